//! The stable codes: one table, from which the enum, the docs and the exit codes come.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($variant:ident $name:literal exit $exit:literal: $meaning:literal next $next:literal;)+) => {
        /// Why a call failed: a stable name (snake_case on the wire). `docs/errors.md` is made from this table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $(#[doc = $meaning] #[serde(rename = $name)] $variant,)+
        }

        impl ErrorCode {
            /// Every code, in the order of the docs.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// What it means, in one line.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)+ }
            }

            /// What to do about it, where the case itself says nothing better.
            pub const fn next(self) -> &'static str {
                match self { $(Self::$variant => $next,)+ }
            }

            /// The exit code of the CLI: 1 failed, 2 usage or configuration, 3 refused, 4 not found or ambiguous,
            /// 5 ZVM unreachable or login refused, 130 interrupted.
            pub const fn exit_code(self) -> u8 {
                match self { $(Self::$variant => $exit,)+ }
            }
        }
    };
}

codes! {
    VmNotFound "vm_not_found" exit 4:
        "No VM has this identifier, name, hostname or address."
        next "Check the name, or give the VM's identifier as the ZVM shows it.";
    VmAmbiguous "vm_ambiguous" exit 4:
        "Two or more VMs match."
        next "Give the identifier of the one that is meant.";
    VmNotProtected "vm_not_protected" exit 4:
        "The VM exists, but no VPG protects it."
        next "Add the VM to a VPG, wait for the initial sync, and try again. Until then no change of it can be guarded.";
    ProtectedSiteIsCloud "protected_site_is_cloud" exit 1:
        "The protected site is AWS or Azure, where no tagged checkpoint can be inserted."
        next "Configure the ZVM of a protected vSphere site instead; a VM that is protected in a cloud can't be guarded.";
    VpgNotReady "vpg_not_ready" exit 1:
        "A VPG that protects the VM is in a state in which its journal takes no new checkpoints."
        next "Bring the VPG back to a state in which it meets its SLA (resume it, wait for the sync), then try again. Don't make the change meanwhile.";
    InsertRefused "insert_refused" exit 1:
        "The ZVM refused a tagged checkpoint."
        next "Read the ZVM's reason, put it right, and guard again. Don't make the change meanwhile.";
    NotListed "not_listed" exit 1:
        "A tagged checkpoint was inserted and did not appear in the journal in time."
        next "Look at the VPG's state and its journal, then guard again. Don't make the change meanwhile.";
    CheckpointGone "checkpoint_gone" exit 4:
        "The checkpoint is not, or no longer, in the journal."
        next "List the VM's checkpoints and choose one that is still there.";
    CheckpointAmbiguous "checkpoint_ambiguous" exit 4:
        "Several VPGs have a checkpoint of this id."
        next "Name the VPG.";
    PathNotFound "path_not_found" exit 4:
        "The path is not on the VM's disks as of this checkpoint."
        next "Check the path (Linux names are case-sensitive), or choose a checkpoint from before the file was deleted.";
    PathAmbiguous "path_ambiguous" exit 4:
        "The path is on several of the VM's partitions."
        next "Give one of the candidates as the path: it names the partition.";
    FlrBusy "flr_busy" exit 1:
        "Another file-level restore session is open on this VM."
        next "Wait until it is unmounted, or have its owner unmount it; a session that is not ours is never touched.";
    FlrFailed "flr_failed" exit 1:
        "The checkpoint could not be mounted for file-level restore."
        next "Read the ZVM's reason; try again or choose another checkpoint.";
    ConfirmationRequired "confirmation_required" exit 3:
        "A human has to agree before anything is mounted."
        next "Show the message to a human, word for word, and wait for their decision.";
    Declined "declined" exit 3:
        "A human declined."
        next "Do nothing; ask the human what they want instead.";
    PlanForeign "plan_foreign" exit 4:
        "No plan of this id is this user's and this ZVM's."
        next "Ask for the recovery without a plan id: that makes a plan of its own.";
    PlanExpired "plan_expired" exit 3:
        "The plan was not carried out in time: it is valid for ten minutes."
        next "Ask for the recovery again, without a plan id: a human decides on the new plan.";
    PlanUsed "plan_used" exit 3:
        "The plan was carried out already; each is carried out at most once."
        next "Ask for the recovery again, without a plan id, if it is still wanted: a human decides on the new plan.";
    PlanAltered "plan_altered" exit 3:
        "The call is not the one that the plan was made for."
        next "Call with the arguments that the plan was made for, or without a plan id for a new plan.";
    PlanChanged "plan_changed" exit 3:
        "What the human agreed to is not as it was any more."
        next "Ask for the recovery again, without a plan id: a human decides on the new plan.";
    PlanDecided "plan_decided" exit 3:
        "The plan was decided already; a decision is final."
        next "Ask for the recovery again, without a plan id, if another decision is wanted: that makes a new plan.";
    PassphraseRefused "passphrase_refused" exit 3:
        "The approver's passphrase was wrong, or was tried too often."
        next "Try again with the right passphrase; after five wrong ones none is accepted for some minutes.";
    NotAllRecovered "not_all_recovered" exit 1:
        "Not everything was recovered; each path has its own outcome."
        next "Read each path's outcome, and ask again for those that are still wanted.";
    LoginRefused "login_refused" exit 5:
        "The ZVM refused the login, or no login is tried because earlier ones were refused."
        next "Check `username` (or `client_id`) in the configuration, and the password (or client secret) there or wherever the configuration takes it from. After three refusals none is tried with the same ones: the account would be locked.";
    NotPermitted "not_permitted" exit 1:
        "The account lacks a permission on the ZVM."
        next "Give the account the role that the call needs (an administrator of the ZVM does that).";
    ZvmUnreachable "zvm_unreachable" exit 5:
        "No answer from the ZVM."
        next "Check `zerto_url`, the network and the ZVM, then try again.";
    ZvmError "zvm_error" exit 1:
        "The ZVM answered with an error, or with something that can't be read."
        next "Read what the ZVM said, check that `zerto_url` is that of a ZVM 10.x, and try again once it is healthy.";
    CertificateRefused "certificate_refused" exit 5:
        "The ZVM's certificate was not accepted."
        next "If it was accepted before and nobody renewed it, find out first who answers at this address. Else save it as a PEM file (`openssl s_client -connect HOST:443 </dev/null | openssl x509`), compare its fingerprint with the one that the appliance shows, and name the file in `ca_file`.";
    CertificateChanged "certificate_changed" exit 5:
        "The ZVM shows another certificate than the one that is known of it. Nothing was sent to it."
        next "If nobody renewed the appliance's certificate, find out first who answers at this address. Else compare what is shown with the SHA-256 that the appliance itself shows, and accept it at a terminal: `zerto-rewind trust`.";
    Stopped "stopped" exit 3:
        "Changes are stopped by a person."
        next "Wait until the person who stopped them lifts it.";
    Cancelled "cancelled" exit 130:
        "The call was cancelled."
        next "Call again if it is still wanted. What had been done before, if anything, is listed.";
    DeadlinePassed "deadline_passed" exit 1:
        "The call did not finish within its time limit."
        next "Try again, or raise `guard.deadline` in the configuration. What had been done, if anything, is listed. Don't make the change meanwhile.";
    InvalidArgument "invalid_argument" exit 2:
        "An argument can't be used."
        next "Correct the argument that the message names.";
    NotDownloadable "not_downloadable" exit 1:
        "File-level restore does not carry this item (a link, a device, …)."
        next "Give the path of the file that is meant; a link's target has to be named itself.";
    DestinationExists "destination_exists" exit 1:
        "Something is already at the destination; it is never overwritten."
        next "Name another destination, or move away what is there.";
    DestinationUnusable "destination_unusable" exit 1:
        "The destination can't be written (missing, no permission, full, or outside of the recovery folder)."
        next "Name another destination, or make room and give permission.";
    DownloadIncomplete "download_incomplete" exit 1:
        "What arrived is not what the listing promised; nothing was kept."
        next "Try again; if it happens again, look at the ZVM's health.";
    GuestNotConfigured "guest_not_configured" exit 2:
        "No way into this VM's guest is configured."
        next "Name the VM in `guests` of the configuration, or leave `restore` out: then the file is downloaded to this host.";
    GuestUnreachable "guest_unreachable" exit 1:
        "The guest can't be reached over SSH, or the connection broke."
        next "Make sure that `ssh` reaches the guest from here, then try again. What a broken connection left in the guest is removed then.";
    GuestConflict "guest_conflict" exit 1:
        "What is in the guest is not what was agreed to, or something is in the way. Nothing was overwritten."
        next "Look at what is there now, then ask again: a human decides on what is there now.";
    GuestFailed "guest_failed" exit 1:
        "A file could not be read or written in the guest."
        next "Read the reason, put it right in the guest, and ask again.";
    NotFound "not_found" exit 4:
        "Nothing is known by this number or id: no row of the ledger, no restore."
        next "Check the number or id that the message names.";
    Denied "denied" exit 3:
        "The catalog does not allow this tool."
        next "Don't call the tool; ask a human.";
    CatalogUnusable "catalog_unusable" exit 2:
        "The catalog has a mistake, so nothing can be decided by it."
        next "Correct the catalog at the line that the message names.";
    Configuration "configuration" exit 2:
        "The configuration has a mistake."
        next "Correct the configuration at the key that the message names.";
    State "state" exit 1:
        "The state folder can't be used."
        next "Check that `state_dir` is a local folder that this user can write to, with room left.";
}
