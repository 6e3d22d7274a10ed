//! Members of any type, read without ever failing.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
        value::MapAccessDeserializer,
    },
};

/// A member whose type can't be relied on; an object or an array counts as nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Scalar {
    #[default]
    Nothing,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

impl Scalar {
    /// A text that is not empty; numbers in their digits.
    pub(crate) fn text(self) -> Option<String> {
        match self {
            Self::Text(text) if !text.is_empty() => Some(text),
            Self::Int(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// A whole number, in quotes or not.
    pub(crate) fn int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            Self::Text(text) => text.trim().parse().ok(),
            // Beyond 2^53 a float is no exact number any more.
            Self::Float(number)
                if number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0 =>
            {
                Some(*number as i64)
            }
            _ => None,
        }
    }

    /// A whole number that is not negative.
    pub(crate) fn unsigned(&self) -> Option<u64> {
        match self {
            // A number over i64::MAX was kept as text.
            Self::Text(text) => text.trim().parse().ok(),
            other => other.int().and_then(|number| u64::try_from(number).ok()),
        }
    }

    pub(crate) fn flag(&self) -> Option<bool> {
        match self {
            Self::Bool(flag) => Some(*flag),
            Self::Text(text) if text.eq_ignore_ascii_case("true") => Some(true),
            Self::Text(text) if text.eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        }
    }

    pub(crate) fn time(&self) -> Option<jiff::Timestamp> {
        match self {
            Self::Text(text) => super::timestamp(text),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_bool<E>(self, value: bool) -> Result<Scalar, E> {
                Ok(Scalar::Bool(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Scalar, E> {
                Ok(Scalar::Int(value))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Scalar, E> {
                Ok(i64::try_from(value)
                    .map_or_else(|_| Scalar::Text(value.to_string()), Scalar::Int))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Scalar, E> {
                Ok(Scalar::Float(value))
            }
            fn visit_str<E>(self, value: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text(value.to_owned()))
            }
            fn visit_string<E>(self, value: String) -> Result<Scalar, E> {
                Ok(Scalar::Text(value))
            }
            fn visit_unit<E>(self) -> Result<Scalar, E> {
                Ok(Scalar::Nothing)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Scalar, A::Error> {
                IgnoredAny.visit_seq(seq)?;
                Ok(Scalar::Nothing)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Scalar, A::Error> {
                IgnoredAny.visit_map(map)?;
                Ok(Scalar::Nothing)
            }
        }

        deserializer.deserialize_any(Any)
    }
}

/// An object, or nothing where something else came.
#[derive(Clone, Debug)]
pub(crate) struct Maybe<T>(pub(crate) Option<T>);

/// The first elements of an array within a row; none where something else came.
#[derive(Clone, Debug)]
pub(crate) struct Many<T>(pub(crate) Vec<T>);

/// Of an array within a row: no VM has as many addresses, no task as many sessions.
const MANY_MAX: usize = 1_000;

/// All elements of an array: the rows of a list.
#[derive(Debug)]
pub(crate) struct Rows<T>(pub(crate) Vec<T>);

/// More are an error: an empty object takes two bytes, and hundreds once it is read.
const ROWS_MAX: usize = 200_000;

/// Hands each element of an array on, until one is not taken.
pub(crate) struct Each<T, F> {
    take: F,
    of: PhantomData<T>,
}

impl<T, F: FnMut(T) -> bool> Each<T, F> {
    /// `take` says whether it goes on.
    pub(crate) fn new(take: F) -> Self {
        Self {
            take,
            of: PhantomData,
        }
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T) -> bool> DeserializeSeed<'de> for Each<T, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T) -> bool> Visitor<'de> for Each<T, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        let mut rows = 0;
        while let Some(row) = seq.next_element()? {
            rows += 1;
            if rows > ROWS_MAX {
                return Err(A::Error::custom(format_args!("more than {ROWS_MAX} rows")));
            }
            if !(self.take)(row) {
                return Err(A::Error::custom("a row that can't be used"));
            }
        }
        Ok(())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Rows<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut rows = Vec::new();
        Each::new(|row| {
            rows.push(row);
            true
        })
        .deserialize(deserializer)?;
        Ok(Self(rows))
    }
}

impl<T> Default for Maybe<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Default for Many<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// The leaves that a visitor takes for nothing.
macro_rules! nothing {
    ($empty:expr) => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($empty)
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($empty)
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($empty)
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($empty)
        }
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok($empty)
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($empty)
        }
    };
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
            type Value = Maybe<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            nothing!(Maybe(None));
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                IgnoredAny.visit_seq(seq)?;
                Ok(Maybe(None))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|object| Maybe(Some(object)))
            }
        }

        deserializer.deserialize_any(Object(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Many<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Array<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Array<T> {
            type Value = Many<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            nothing!(Many(Vec::new()));
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut first = Vec::new();
                while first.len() < MANY_MAX {
                    match seq.next_element()? {
                        Some(one) => first.push(one),
                        None => return Ok(Many(first)),
                    }
                }
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Many(first))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                IgnoredAny.visit_map(map)?;
                Ok(Many(Vec::new()))
            }
        }

        deserializer.deserialize_any(Array(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(json: &str) -> Scalar {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_scalar_is_whatever_can_be_made_of_it() {
        assert_eq!(scalar("\"a\"").text().as_deref(), Some("a"));
        assert_eq!(scalar("38").text().as_deref(), Some("38"));
        assert_eq!(scalar("\"\"").text(), None);
        assert_eq!(scalar("{\"a\":[1]}"), Scalar::Nothing);
        assert_eq!(scalar("[[1],{}]"), Scalar::Nothing);
        assert_eq!(scalar("null"), Scalar::Nothing);
        assert_eq!(scalar("\" 38 \"").int(), Some(38));
        assert_eq!(scalar("7.0").int(), Some(7));
        assert_eq!(scalar("7.5").int(), None);
        assert_eq!(scalar("1e300").int(), None);
        assert_eq!(scalar("-1").unsigned(), None);
        assert_eq!(scalar("18446744073709551615").unsigned(), Some(u64::MAX));
        assert_eq!(
            scalar("\"18446744073709551615\"").unsigned(),
            Some(u64::MAX)
        );
        assert_eq!(scalar("\"True\"").flag(), Some(true));
        assert_eq!(scalar("false").flag(), Some(false));
        assert_eq!(scalar("1").flag(), None);
    }

    #[test]
    fn lists_are_bounded_however_small_their_rows_are() {
        let nulls = |count: usize| format!("[{}null]", "null,".repeat(count - 1));
        let rows = |count| serde_json::from_str::<Rows<Scalar>>(&nulls(count));
        assert_eq!(rows(ROWS_MAX).unwrap().0.len(), ROWS_MAX);
        let error = rows(ROWS_MAX + 1).unwrap_err().to_string();
        assert!(error.starts_with("more than 200000 rows"), "{error}");
        let many: Many<Scalar> = serde_json::from_str(&nulls(MANY_MAX * 5)).unwrap();
        assert_eq!(many.0.len(), MANY_MAX);
        let mut taken = 0;
        let each = Each::new(|_: Scalar| {
            taken += 1;
            taken < 3
        });
        let whole = nulls(1_000);
        let mut json = serde_json::Deserializer::from_str(&whole);
        assert!(each.deserialize(&mut json).is_err());
        assert_eq!(taken, 3);
    }

    #[test]
    fn objects_and_arrays_of_the_wrong_type_are_nothing() {
        #[derive(Debug, Default, Deserialize)]
        #[serde(default)]
        struct Row {
            a: Maybe<Inner>,
            b: Many<Scalar>,
        }
        #[derive(Debug, Default, Deserialize)]
        #[serde(default)]
        struct Inner {
            c: Scalar,
        }
        for wrong in ["null", "1", "-1", "1.5", "true", "\"x\""] {
            let row: Row =
                serde_json::from_str(&format!("{{\"a\":{wrong},\"b\":{wrong}}}")).unwrap();
            assert!(row.a.0.is_none() && row.b.0.is_empty(), "{wrong}");
        }
        let row: Row = serde_json::from_str("{\"a\":[1],\"b\":{\"x\":2}}").unwrap();
        assert!(row.a.0.is_none() && row.b.0.is_empty());
        let row: Row = serde_json::from_str("{\"a\":{\"c\":1,\"d\":2},\"b\":[1,null]}").unwrap();
        assert_eq!(row.a.0.unwrap().c, Scalar::Int(1));
        assert_eq!(row.b.0, [Scalar::Int(1), Scalar::Nothing]);
    }
}
