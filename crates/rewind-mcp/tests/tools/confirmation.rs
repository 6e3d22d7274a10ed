//! A human decides, by a form or elsewhere; and what a model or a client does by itself decides nothing.
use std::fs;

use rewind_core::{How, Verdict};
use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ElicitationAction,
        InputRequiredResult,
    },
};
use serde_json::{Value, json};

use crate::support::{Client, Era, FilledIn, World, accepts, says, text, types};

const GUARD: &str = "zerto_create_tagged_checkpoint";
const RECOVER: &str = "zerto_recover_file";
const PATH: &str = "/home/justin/app-config.yaml";
const ERAS: [Era; 2] = [Era::Old, Era::Current];

/// A world with a guard, and what to ask for.
async fn guarded(configuration: Value) -> (World, Value) {
    let world = World::new().await.configured(configuration);
    let edit = json!({ "vm": "jp-ubuntu", "action": "edit" });
    let receipt = world.client().await.ok(GUARD, edit).await;
    let checkpoint = &receipt["pins"][0]["checkpoint"];
    let wanted = json!({ "vm": "jp-ubuntu", "path": PATH, "checkpoint": checkpoint });
    (world, wanted)
}

fn with(wanted: &Value, more: Value) -> Value {
    let mut wanted = wanted.clone();
    for (key, value) in more.as_object().unwrap() {
        wanted[key] = value.clone();
    }
    wanted
}

fn mounts(world: &World) -> usize {
    let requests = world.sim.requests();
    let mount = requests
        .iter()
        .filter(|request| request.method == "POST" && request.path.ends_with("/v1/flrs"));
    mount.count()
}

async fn with_forms(world: &World, era: Era, filled_in: FilledIn) -> Client {
    Client::with_forms(world.server(), era, filled_in).await
}

/// As `zerto-rewind approve` does.
async fn approve(world: &World, id: &str) {
    let rewind = world.beside();
    let known = rewind.plan(id).await.unwrap();
    rewind
        .decide(&known, Verdict::Approved, How::Approve, "cli/ana")
        .await
        .unwrap();
}

async fn how(world: &World, id: &str) -> How {
    let known = world.beside().plan(id).await.unwrap();
    known.decision.unwrap().how
}

#[tokio::test]
async fn a_person_who_types_the_vms_name_into_the_form_gets_the_file() {
    for era in ERAS {
        let (world, wanted) = guarded(json!({})).await;
        let file = world.sim.guest_path("jp-ubuntu", PATH).unwrap();
        let before = fs::read(&file).unwrap();
        fs::write(&file, "broken").unwrap();
        let client = with_forms(&world, era, types("JP-Ubuntu ")).await;
        let result = client.call(RECOVER, wanted.clone()).await;
        assert_eq!(result.is_error, Some(false), "{era:?}: {}", text(&result));
        let recovery = result.structured_content.clone().unwrap();
        let local = recovery["local_path"].as_str().unwrap();
        assert_eq!(fs::read(local).unwrap(), before);
        assert_eq!(
            (&recovery["outcome"], &recovery["bytes"]),
            (&json!("placed"), &json!(158))
        );
        assert!(text(&result).contains(recovery["files"][0]["sha256"].as_str().unwrap()));

        let [form] = client.forms().try_into().unwrap();
        for said in [
            "jp-ubuntu",
            PATH,
            wanted["checkpoint"].as_str().unwrap(),
            local,
            "an estimate",
        ] {
            assert!(
                form.message.contains(said),
                "{said:?} is not in {}",
                form.message
            );
        }
        assert_eq!(form.schema["required"], json!(["vm_name"]));
        assert_eq!(form.schema["properties"]["vm_name"]["type"], "string");
        assert!(
            !form.schema.to_string().contains("default"),
            "{}",
            form.schema
        );
        assert_eq!(
            how(&world, recovery["plan_id"].as_str().unwrap()).await,
            How::Form
        );
        assert!(world.sim.flr_sessions().is_empty());

        let again = client.err(RECOVER, wanted).await;
        assert_eq!(
            again["code"], "destination_exists",
            "nothing is overwritten"
        );
    }
}

#[tokio::test]
async fn a_client_that_answers_by_itself_does_not_pass() {
    for era in ERAS {
        let (world, wanted) = guarded(json!({})).await;
        let answers: Vec<FilledIn> = vec![
            accepts(json!({})),
            accepts(json!({ "vm_name": "" })),
            accepts(json!({ "vm_name": true })),
            accepts(json!({ "vm_name": null })),
            accepts(json!({ "ok": true, "confirmed": true })),
            accepts(json!([])),
            types("yes"),
            types("app01"),
            says(ElicitationAction::Accept),
            says(ElicitationAction::Decline),
            says(ElicitationAction::Cancel),
        ];
        for filled_in in answers {
            let client = with_forms(&world, era, filled_in).await;
            let asked = with(&wanted, json!({ "confirmed": true }));
            let error = client.err(RECOVER, asked).await;
            assert_eq!(error["code"], "declined", "{era:?}: {error}");
            assert_eq!(error["plan_id"], Value::Null);
            // It is final: nothing else opens this plan.
            let message = error["message"].as_str().unwrap();
            let id = message.split([' ', ':']).nth(1).unwrap();
            let later = client
                .err(RECOVER, json!({ "plan_id": id, "confirmed": true }))
                .await;
            assert_eq!(later["code"], "declined", "{later}");
            assert_eq!(client.forms().len(), 1);
        }
        assert_eq!(mounts(&world), 0);
    }
}

#[tokio::test]
async fn a_model_that_says_confirmed_nine_times_mounts_nothing() {
    for era in ERAS {
        let (world, wanted) = guarded(json!({})).await;
        let client = match era {
            Era::Old => world.client().await,
            Era::Current => Client::modern(world.server(), "test-client").await,
        };
        let mut plans = Vec::new();
        for _ in 0..9 {
            let error = client
                .err(RECOVER, with(&wanted, json!({ "confirmed": true })))
                .await;
            assert_eq!(error["code"], "confirmation_required");
            let next = error["next"].as_str().unwrap();
            let id = error["plan_id"].as_str().unwrap();
            assert!(
                next.contains(&format!("zerto-rewind approve {id}")),
                "{next}"
            );
            assert!(next.contains("`confirmed` decides nothing here"), "{next}");
            assert!(error["message"].as_str().unwrap().contains(PATH));
            plans.push(id.to_owned());
            // Nor with the plan.
            let error = client
                .err(RECOVER, json!({ "plan_id": id, "confirmed": true }))
                .await;
            assert_eq!(error["code"], "confirmation_required");
        }
        plans.dedup();
        assert_eq!(
            plans.len(),
            1,
            "a person is asked about one plan, not nine: {plans:?}"
        );
        assert_eq!(mounts(&world), 0);
        assert!(!world.recover_dir().exists());
    }
}

#[tokio::test]
async fn what_was_approved_elsewhere_is_carried_out_once_and_as_it_was() {
    for named_alone in [false, true] {
        let (world, wanted) = guarded(json!({})).await;
        let client = world.client().await;
        let error = client.err(RECOVER, wanted.clone()).await;
        let plan = json!({ "plan_id": error["plan_id"] });
        let id = error["plan_id"].as_str().unwrap();
        approve(&world, id).await;
        // Without the plan's id it is said that it waits, and no other plan is made.
        let waits = client
            .err(RECOVER, with(&wanted, json!({ "confirmed": true })))
            .await;
        assert_eq!(
            (&waits["code"], &waits["plan_id"]),
            (&json!("confirmation_required"), &json!(id))
        );
        assert!(waits["next"].as_str().unwrap().contains(id), "{waits}");
        for altered in [
            json!({ "path": "/etc/shadow" }),
            json!({ "vm": "app01" }),
            json!({ "checkpoint": "1" }),
            json!({ "vpg": "jp-ubuntu" }),
            json!({ "destination": "elsewhere" }),
            json!({ "path": null, "paths": [PATH] }),
        ] {
            let mut altered = with(&wanted, altered);
            altered["plan_id"] = id.into();
            let error = client.err(RECOVER, altered).await;
            assert_eq!(error["code"], "plan_altered", "{error}");
        }
        assert_eq!(mounts(&world), 0);
        let asked = match named_alone {
            true => plan.clone(),
            false => with(&wanted, plan.clone()),
        };
        let recovery = client.ok(RECOVER, asked.clone()).await;
        assert_eq!(recovery["plan_id"], id);
        assert_eq!(recovery["bytes"], 158);
        fs::remove_file(recovery["local_path"].as_str().unwrap()).unwrap();
        let replay = client.err(RECOVER, asked).await;
        assert_eq!(replay["code"], "plan_used");
        assert_eq!(mounts(&world), 1);
        let foreign = client
            .err(RECOVER, json!({ "plan_id": "p-00000000" }))
            .await;
        assert_eq!(foreign["code"], "plan_foreign");
    }
}

#[tokio::test]
async fn what_was_denied_elsewhere_stays_denied() {
    let (world, wanted) = guarded(json!({})).await;
    let client = world.client().await;
    let first = client.err(RECOVER, wanted.clone()).await;
    let rewind = world.beside();
    let known = rewind
        .plan(first["plan_id"].as_str().unwrap())
        .await
        .unwrap();
    rewind
        .decide(&known, Verdict::Declined, How::Approve, "cli/ana")
        .await
        .unwrap();
    let error = client
        .err(
            RECOVER,
            with(&wanted, json!({ "plan_id": first["plan_id"] })),
        )
        .await;
    assert_eq!(error["code"], "declined");
    assert!(
        error["message"].as_str().unwrap().contains("cli/ana"),
        "{error}"
    );
    let next = client.err(RECOVER, wanted).await;
    assert_eq!(next["code"], "confirmation_required");
    assert_ne!(next["plan_id"], first["plan_id"]);
}

#[tokio::test]
async fn the_configuration_says_how_a_human_is_asked() {
    let (world, wanted) = guarded(json!({ "confirmation": "form" })).await;
    let error = world
        .client()
        .await
        .err(RECOVER, with(&wanted, json!({ "confirmed": true })))
        .await;
    assert_eq!(error["code"], "confirmation_required");
    let next = error["next"].as_str().unwrap();
    assert!(
        next.contains("by a form") && !next.contains("zerto-rewind"),
        "{next}"
    );

    let world = world.configured(json!({ "confirmation": "approve" }));
    for era in ERAS {
        let client = with_forms(&world, era, types("jp-ubuntu")).await;
        let error = client.err(RECOVER, wanted.clone()).await;
        assert!(
            error["next"].as_str().unwrap().contains("approve"),
            "{error}"
        );
        assert!(client.forms().is_empty());
    }
    assert_eq!(mounts(&world), 0);

    let world = world.configured(json!({ "confirmation": "argument" }));
    let client = with_forms(&world, Era::Current, types("jp-ubuntu")).await;
    let error = client.err(RECOVER, wanted.clone()).await;
    assert!(
        error["next"]
            .as_str()
            .unwrap()
            .contains("`confirmed: true`"),
        "{error}"
    );
    assert_eq!(mounts(&world), 0);
    let recovery = client
        .ok(RECOVER, with(&wanted, json!({ "confirmed": true })))
        .await;
    assert!(client.forms().is_empty());
    assert_eq!(
        how(&world, recovery["plan_id"].as_str().unwrap()).await,
        How::Argument
    );
}

#[tokio::test]
async fn a_form_that_is_answered_with_an_error_is_a_no_that_is_final_and_named() {
    let fails = || -> FilledIn { Box::new(|_| Err(ErrorData::internal_error("no screen", None))) };
    for configuration in [json!({}), json!({ "confirmation": "form" })] {
        let (world, wanted) = guarded(configuration).await;
        let client = with_forms(&world, Era::Old, fails()).await;
        let error = client.err(RECOVER, wanted.clone()).await;
        assert_eq!(error["code"], "declined");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("answered the form with an error") && message.contains("final"),
            "{message}"
        );
        let id = message.split([' ', ':']).nth(1).unwrap();
        let known = world.beside().plan(id).await.unwrap();
        let decision = known.decision.clone().unwrap();
        assert_eq!(
            (decision.verdict, decision.how),
            (Verdict::Unanswered, How::Form)
        );
        // Nobody opens it from elsewhere.
        let rewind = world.beside();
        let approved = rewind.decide(&known, Verdict::Approved, How::Approve, "cli/ana");
        assert_eq!(
            approved.await.unwrap_err().code,
            rewind_core::ErrorCode::PlanDecided
        );
        let later = client
            .err(RECOVER, json!({ "plan_id": id, "confirmed": true }))
            .await;
        assert_eq!(later["code"], "declined", "{later}");
        assert_eq!(client.forms().len(), 1);
        assert_eq!(mounts(&world), 0);
    }
}

/// One round of a call in the current revision.
async fn once(
    client: &Client,
    arguments: &Value,
    answer: Option<(&str, Value)>,
) -> CallToolResponse {
    let mut request =
        CallToolRequestParams::new(RECOVER).with_arguments(arguments.as_object().unwrap().clone());
    if let Some((state, responses)) = answer {
        request = request.with_input_responses(serde_json::from_value(responses).unwrap());
        request.request_state = Some(state.to_owned());
    }
    client.0.call_tool_once(request).await.unwrap()
}

async fn question(client: &Client, arguments: &Value) -> InputRequiredResult {
    match once(client, arguments, None).await {
        CallToolResponse::InputRequired(question) => question,
        other => panic!("{other:?}"),
    }
}

fn code(response: &CallToolResponse) -> String {
    let CallToolResponse::Complete(CallToolResult {
        structured_content: Some(content),
        ..
    }) = response
    else {
        panic!("{response:?}");
    };
    content["error"]["code"].as_str().unwrap_or("ok").to_owned()
}

#[tokio::test]
async fn a_state_that_comes_back_is_ours_and_for_this_call_once() {
    let (world, wanted) = guarded(json!({})).await;
    let client = with_forms(&world, Era::Current, types("unused")).await;
    let asked = question(&client, &wanted).await;
    assert_eq!(mounts(&world), 0);
    let requests = asked.input_requests.unwrap();
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["decision"]);
    let state = asked.request_state.unwrap();
    let agrees =
        json!({ "decision": { "action": "accept", "content": { "vm_name": "jp-ubuntu" } } });

    // Changed by a byte at a time, cut, made up, or of another user.
    let mut forged: Vec<String> = (0..state.len())
        .step_by(7)
        .map(|at| {
            let mut bytes = state.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            String::from_utf8(bytes).unwrap()
        })
        .collect();
    let other = guarded(json!({})).await;
    let theirs = with_forms(&other.0, Era::Current, types("unused")).await;
    forged.push(question(&theirs, &other.1).await.request_state.unwrap());
    forged.extend([
        "".to_owned(),
        "x".to_owned(),
        state[..state.len() / 2].to_owned(),
    ]);
    for forged in forged {
        let response = once(&client, &wanted, Some((&forged, agrees.clone()))).await;
        assert_eq!(code(&response), "plan_altered", "{forged}");
    }
    // With other arguments.
    let altered = with(&wanted, json!({ "path": "/etc/shadow" }));
    let response = once(&client, &altered, Some((&state, agrees.clone()))).await;
    assert_eq!(code(&response), "plan_altered");
    // Without an answer: asked again.
    for nothing in [json!({}), json!({ "other": { "action": "accept" } })] {
        let response = once(&client, &wanted, Some((&state, nothing))).await;
        assert!(
            matches!(response, CallToolResponse::InputRequired(_)),
            "{response:?}"
        );
    }
    assert_eq!(mounts(&world), 0);
    let response = once(&client, &wanted, Some((&state, agrees.clone()))).await;
    assert_eq!(code(&response), "ok");
    let replay = once(&client, &wanted, Some((&state, agrees))).await;
    assert_eq!(code(&replay), "plan_used");
    assert_eq!(mounts(&world), 1);
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_is_a_no() {
    let (world, wanted) = guarded(json!({})).await;
    let client = with_forms(&world, Era::Current, types("unused")).await;
    for nonsense in [
        json!("accept"),
        json!({}),
        json!({ "action": "approve" }),
        json!([1]),
    ] {
        let asked = question(&client, &wanted).await;
        let state = asked.request_state.unwrap();
        let answer = json!({ "decision": nonsense });
        let response = once(&client, &wanted, Some((&state, answer))).await;
        assert_eq!(code(&response), "declined", "{nonsense}");
        let agrees =
            json!({ "decision": { "action": "accept", "content": { "vm_name": "jp-ubuntu" } } });
        let response = once(&client, &wanted, Some((&state, agrees))).await;
        assert_eq!(code(&response), "declined", "no second try");
    }
    assert_eq!(mounts(&world), 0);
}

#[tokio::test]
async fn patterns_are_looked_for_after_one_form_and_placed_after_another() {
    for era in ERAS {
        let (world, wanted) = guarded(json!({})).await;
        let client = with_forms(&world, era, types("jp-ubuntu")).await;
        let several = json!({
            "vm": "jp-ubuntu", "checkpoint": wanted["checkpoint"], "paths": ["/etc/host*", PATH],
        });
        let recovery = client.ok(RECOVER, several.clone()).await;
        let forms: Vec<String> = client
            .forms()
            .into_iter()
            .map(|form| form.message)
            .collect();
        assert_eq!(forms.len(), 2, "{forms:?}");
        assert!(
            forms[0].contains("Look into") && forms[0].contains("/etc/host*"),
            "{}",
            forms[0]
        );
        for found in ["/etc/hosts", "/etc/hostname", PATH, "158 bytes"] {
            assert!(forms[1].contains(found), "{found:?} is not in {}", forms[1]);
        }
        assert!(!forms[1].contains('*'), "{}", forms[1]);
        let outcomes: Vec<_> = recovery["paths"]
            .as_array()
            .unwrap()
            .iter()
            .map(|path| {
                (
                    path["path"].as_str().unwrap(),
                    path["outcome"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(
            outcomes,
            [
                ("/etc/hostname", "placed"),
                ("/etc/hosts", "placed"),
                (PATH, "placed")
            ]
        );
        // The agreement to look still holds, the one to place does not.
        let elsewhere = with(&several, json!({ "destination": "elsewhere" }));
        client.ok(RECOVER, elsewhere).await;
        assert_eq!(client.forms().len(), 3);
        assert!(world.sim.flr_sessions().is_empty());
    }
}

#[tokio::test]
async fn patterns_are_decided_on_elsewhere_in_two_steps() {
    let (world, wanted) = guarded(json!({})).await;
    let client = world.client().await;
    let several = json!({
        "vm": "jp-ubuntu", "checkpoint": wanted["checkpoint"], "paths": ["/etc/host*"], "confirmed": true,
    });
    let preview = client.err(RECOVER, several.clone()).await;
    assert!(
        preview["message"].as_str().unwrap().contains("Look into"),
        "{preview}"
    );
    assert_eq!(mounts(&world), 0);
    let id = preview["plan_id"].as_str().unwrap();
    approve(&world, id).await;
    // It holds for the session that asked, whoever knows its id.
    let other = world.client().await;
    let file = with(&wanted, json!({ "plan_id": null }));
    for (tool, arguments, named) in [
        (RECOVER, json!({ "plan_id": id }), true),
        (RECOVER, several.clone(), false),
        ("zerto_diff_file", file, false),
    ] {
        let asked = other.err(tool, arguments).await;
        assert_eq!(asked["code"], "confirmation_required");
        assert_ne!(asked["plan_id"], preview["plan_id"]);
        let message = asked["message"].as_str().unwrap();
        assert!(message.contains("Look into"), "{message}");
        let told = message.contains(&format!("agreed to with plan {id} holds for the session"));
        assert_eq!(told, named, "{message}");
    }
    assert_eq!(mounts(&world), 0);
    let effects = client
        .err(RECOVER, json!({ "plan_id": id, "confirmed": true }))
        .await;
    assert_eq!(effects["code"], "confirmation_required");
    assert!(
        effects["message"]
            .as_str()
            .unwrap()
            .contains("/etc/hostname"),
        "{effects}"
    );
    let id = effects["plan_id"].as_str().unwrap();
    approve(&world, id).await;
    let recovery = client.ok(RECOVER, json!({ "plan_id": id })).await;
    assert_eq!(recovery["paths"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn by_the_argument_alone_what_patterns_match_is_shown_before_it_counts() {
    let (world, wanted) = guarded(json!({ "confirmation": "argument", "previews": "free" })).await;
    let client = world.client().await;
    let several = json!({
        "vm": "jp-ubuntu", "checkpoint": wanted["checkpoint"], "paths": ["/etc/host*"], "confirmed": true,
    });
    let shown = client.err(RECOVER, several).await;
    assert_eq!(shown["code"], "confirmation_required");
    assert!(
        shown["message"].as_str().unwrap().contains("/etc/hostname"),
        "{shown}"
    );
    let plan = json!({ "plan_id": shown["plan_id"] });
    assert_eq!(
        client.err(RECOVER, plan.clone()).await["code"],
        "confirmation_required"
    );
    client
        .ok(RECOVER, with(&plan, json!({ "confirmed": true })))
        .await;
}

#[tokio::test]
async fn a_part_that_is_missing_is_an_error_with_all_that_is_there() {
    let (world, wanted) = guarded(json!({})).await;
    let client = with_forms(&world, Era::Current, types("jp-ubuntu")).await;
    let several = json!({
        "vm": "jp-ubuntu", "checkpoint": wanted["checkpoint"], "paths": [PATH, "/etc/nothing"],
    });
    let result = client.call(RECOVER, several).await;
    assert_eq!(result.is_error, Some(true));
    let content = result.structured_content.clone().unwrap();
    assert_eq!(content["error"]["code"], "not_all_recovered");
    assert_eq!(content["error"]["done"][0]["kind"], "placed");
    assert_eq!(content["paths"][0]["outcome"], "placed");
    assert_eq!(content["paths"][1]["outcome"], "failed");
    let text = text(&result);
    for said in [
        "not_all_recovered",
        "Recovered 1 of 2 paths",
        "/etc/nothing: failed",
        "path_not_found",
    ] {
        assert!(text.contains(said), "{said:?} is not in {text}");
    }
}

#[tokio::test]
async fn what_is_missing_or_too_much_is_told() {
    let world = World::new().await;
    let client = world.client().await;
    for (arguments, said) in [
        (json!({}), "`path` is missing"),
        (
            json!({ "vm": "a", "path": "/b" }),
            "`checkpoint` is missing",
        ),
        (
            json!({ "path": "/b", "checkpoint": "1" }),
            "`vm` is missing",
        ),
        (
            json!({ "vm": "a", "path": "/b", "paths": ["/c"], "checkpoint": "1" }),
            "not both",
        ),
        (
            json!({ "vm": "a", "paths": ["/b", 7], "checkpoint": "1" }),
            "`paths` has an item that has to be of type string",
        ),
        (
            json!({ "vm": "a", "paths": "/b", "checkpoint": "1" }),
            "`paths` has to be of type array",
        ),
        (
            json!({ "vm": "a", "paths": vec!["/b"; 101], "checkpoint": "1" }),
            "101 items; 100 are allowed",
        ),
        (
            json!({ "vm": "a", "plan_id": "p-00000000" }),
            "`path` is missing",
        ),
    ] {
        let error = client.err(RECOVER, arguments.clone()).await;
        assert_eq!(error["code"], "invalid_argument", "{arguments}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(said), "{arguments}: {message}");
    }
    assert!(world.sim.requests().is_empty());
}
