//! Tables as people have them: which column is what, what becomes of text and missing values, and that another file of the
//! same columns becomes the same features.

use widemargin::Error;
use widemargin::data::{Column, ColumnKind, Dataset, LabelKind, ReadOptions, Rows, Schema, read_bytes, unlike_scales};
use widemargin::with_rows;

fn read(text: &str, options: &ReadOptions) -> Result<Dataset, Error> {
    read_bytes("t.csv", text.as_bytes(), options)
}

fn table(text: &str) -> Dataset {
    read(text, &ReadOptions::default()).unwrap()
}

fn values(data: &Dataset) -> Vec<Vec<f64>> {
    let row = |i| with_rows!(&data.rows, x => (0..x.cols()).map(|j| x.value(i, j)).collect());
    (0..data.rows.rows()).map(row).collect()
}

fn labels(data: &Dataset) -> Vec<&str> {
    let labels = data.labels.as_ref().unwrap();
    labels.codes().iter().map(|&code| labels.names()[code as usize].as_str()).collect()
}

fn columns(data: &Dataset) -> &[Column] {
    data.schema.as_ref().unwrap().columns.as_ref().unwrap()
}

fn refused(text: &str, options: &ReadOptions) -> String {
    read(text, options).unwrap_err().to_string()
}

const MESSY: &str = "id,age,city,member,y\n\
    1,30,Rome,yes,no\n\
    2,,Bonn,no,yes\n\
    3,50,Rome,yes,no\n\
    4,40,NA,no,no\n\
    5,20,Bonn,,yes\n\
    6,35,Oslo,yes,no\n";

fn messy_options() -> ReadOptions {
    ReadOptions { impute: true, drop: vec!["id".into()], ..ReadOptions::default() }
}

#[test]
fn text_booleans_and_missing_values_become_features() {
    let data = read(MESSY, &messy_options()).unwrap();
    let names =
        ["age", "age=missing", "city=Bonn", "city=Rome", "city=other", "city=missing", "member", "member=missing"];
    assert_eq!(data.feature_names().unwrap(), names);
    assert_eq!(
        values(&data),
        [
            [30.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0],
            [35.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [50.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0],
            [40.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0],
            [20.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0],
            [35.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0],
        ]
    );
    let kinds: Vec<ColumnKind> = columns(&data).iter().map(|column| column.kind).collect();
    assert_eq!(kinds, [ColumnKind::Number, ColumnKind::Category, ColumnKind::Boolean]);
    assert_eq!(columns(&data)[1].categories, ["Bonn", "Rome"]);
    let label = &data.schema.as_ref().unwrap().label;
    assert_eq!((label.name.as_deref(), label.number, label.kind), (Some("y"), Some(5), LabelKind::Text));
}

#[test]
fn a_schema_finds_its_columns_in_any_order() {
    let data = read(MESSY, &messy_options()).unwrap();
    let schema = data.schema.clone();
    let by_schema = ReadOptions { schema, any_label: true, ..ReadOptions::default() };
    // The same rows: columns shuffled, one more, and no label.
    let shuffled: String = MESSY
        .lines()
        .map(|line| {
            let f: Vec<&str> = line.split(',').collect();
            format!("{},x{},{},{}\n", f[3], f[0], f[2], f[1])
        })
        .collect();
    let other = read(&shuffled, &by_schema).unwrap();
    assert_eq!(values(&other), values(&data));
    assert!(other.labels.is_none(), "no feature is taken for the label");
    assert_eq!(other.remarks.len(), 1);
    assert!(other.remarks[0].about.ends_with("not used: xid"), "{}", other.remarks[0].about);
    let labelled = read(MESSY, &by_schema).unwrap();
    assert_eq!((values(&labelled), labels(&labelled)), (values(&data), labels(&data)));
    // What training never saw is another category; what is missing is filled in.
    let new = read("city,member,age\nParis,no,7\n,TRUE,\n", &by_schema).unwrap();
    assert_eq!(values(&new)[0], [7.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    assert_eq!(values(&new)[1], [35.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
    let message = refused("age,member,z\n1,no,0\n", &by_schema);
    assert!(message.contains("lacks a column that the model needs: city"), "{message}");
    let message = refused("z\n1\n", &by_schema);
    assert!(message.contains("age, city, member"), "{message}");
    let message = refused("age,city,member\n1,Rome,no\nold,Rome,no\n", &by_schema);
    assert!(message.starts_with("t.csv:3:1: found `old`, expected a number"), "{message}");
    let message = refused("age,city,member\n1,Rome,perhaps\n", &by_schema);
    assert!(message.contains("expected true or false"), "{message}");
}

#[test]
fn files_without_names_go_by_place() {
    let data = table("1,2,0\n3,4,1\n5,6,0\n");
    let schema = data.schema.clone();
    let by_schema = ReadOptions { schema, any_label: true, header: Some(false), ..ReadOptions::default() };
    let labelled = read("7,8,1\n", &by_schema).unwrap();
    assert_eq!((values(&labelled), labels(&labelled)), (vec![vec![7.0, 8.0]], vec!["1"]));
    let bare = read("7,8\n", &by_schema).unwrap();
    assert!(bare.labels.is_none() && values(&bare) == [[7.0, 8.0]]);
    for text in ["7\n", "7,8,9,10\n"] {
        let message = refused(text, &by_schema);
        assert!(message.contains("the model knows 2 columns"), "{message}");
    }
    // Features that have numbers only are taken as so many columns.
    let schema = Some(Schema::nameless(&["a".into(), "b".into()]).with_columns(2));
    let numbered = ReadOptions { schema, any_label: true, ..ReadOptions::default() };
    let data = read("p,q,y\n1,2,a\n", &numbered).unwrap();
    assert_eq!((values(&data), labels(&data)), (vec![vec![1.0, 2.0]], vec!["a"]));
    assert!(read("p,q\n1,2\n", &numbered).unwrap().labels.is_none());
}

#[test]
fn the_label_is_no_silent_guess() {
    let label = |text: &str| table(text).schema.unwrap().label.name.unwrap();
    assert_eq!(label("a,Target,b\n1,x,2\n3,z,4\n"), "Target");
    assert_eq!(label("a,b,c\n1,2,0\n3,4,1\n"), "c");
    let prices: String = (0..30).map(|i| format!("{i},{}.25\n", i)).collect();
    let message = refused(&format!("rooms,price\n{prices}"), &ReadOptions::default());
    assert!(message.contains("`price`") && message.contains("regression target"), "{message}");
    assert!(message.contains("label = COLUMN"), "{message}");
    let named = refused(&format!("rooms,target\n{prices}"), &ReadOptions::default());
    assert!(named.contains("regression target"), "{named}");
    let ids: String = (0..200).map(|i| format!("{},{i}\n", i % 7)).collect();
    let message = refused(&format!("a,b\n{ids}"), &ReadOptions::default());
    assert!(message.contains("200 different values") && message.contains("identifier"), "{message}");
    let asked = ReadOptions { label: Some("b".into()), ..ReadOptions::default() };
    assert_eq!(read(&format!("a,b\n{ids}"), &asked).unwrap().labels.unwrap().names().len(), 200);
    let any = ReadOptions { any_label: true, ..ReadOptions::default() };
    assert!(read(&format!("rooms,price\n{prices}"), &any).is_ok());
    assert!(refused("a\n1\n2\n", &ReadOptions::default()).contains("no features beside the label"));
    assert!(refused("a,y\n1,NA\n", &ReadOptions::default()).contains("a label"));
}

#[test]
fn other_characters_between_fields_are_recognised() {
    for delimiter in [';', '\t', '|'] {
        let text = "a,b,y\n1,2,u\n3,4,v\n".replace(',', &delimiter.to_string());
        assert_eq!(values(&table(&text)), [[1.0, 2.0], [3.0, 4.0]], "{delimiter:?}");
    }
    let spaces = ReadOptions { delimiter: Some(b' '), ..ReadOptions::default() };
    assert_eq!(values(&read("a b y\n1 2 u\n3 4 v\n", &spaces).unwrap()), [[1.0, 2.0], [3.0, 4.0]]);
    let quoted = table("a;b;y\n1;\"x,y\";u\n3;\"x,y\";v\n");
    assert_eq!(quoted.feature_names().unwrap(), ["a", "b=x,y", "b=other"]);
}

#[test]
fn columns_are_chosen_and_left_out() {
    let text = "a,b,c,y\n1,2,3,u\n4,5,6,v\n";
    let with = |keep: &[&str], drop: &[&str]| {
        let own = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        read(text, &ReadOptions { keep: own(keep), drop: own(drop), ..ReadOptions::default() })
    };
    assert_eq!(with(&["c", "a"], &[]).unwrap().feature_names().unwrap(), ["a", "c"]);
    assert_eq!(with(&[], &["b", "3"]).unwrap().feature_names().unwrap(), ["a"]);
    assert!(matches!(with(&["z"], &[]), Err(Error::Parameter { .. })));
    assert!(matches!(with(&[], &["9"]), Err(Error::Parameter { .. })));
    assert!(matches!(with(&["a"], &["a"]), Err(Error::Parameter { .. })));
    let libsvm = ReadOptions { drop: vec!["1".into()], ..ReadOptions::default() };
    assert!(matches!(read_bytes("t.libsvm", b"1 1:1\n", &libsvm), Err(Error::Parameter { .. })));
}

#[test]
fn what_is_no_feature_is_refused_with_a_hint() {
    let rows = |value: &dyn Fn(usize) -> String| -> String {
        (0..150).map(|i| format!("{},{},{}\n", i % 5, value(i), i % 2)).collect()
    };
    let default = ReadOptions::default();
    let message = refused(&format!("a,when,y\n{}", rows(&|i| format!("2024-01-{:02}", 1 + i % 28))), &default);
    assert!(
        message.starts_with("t.csv:2:2: column `when` holds dates") && message.contains("drop = when"),
        "{message}"
    );
    let message = refused(&format!("a,name,y\n{}", rows(&|i| format!("n{i}"))), &default);
    assert!(message.contains("column `name` has 150 different texts") && message.contains("drop = name"), "{message}");
    let message =
        refused(&format!("a,b,y\n{}", rows(&|i| if i == 77 { "oops".into() } else { format!("{i}") })), &default);
    assert!(message.starts_with("t.csv:79:2: found `oops`, expected a number"), "{message}");
    let message = refused("a,b,y\n1,2,0\n,3,1\n4,5,1\n", &default);
    assert!(message.contains("use impute or drop = a"), "{message}");
    let impute = ReadOptions { impute: true, ..ReadOptions::default() };
    assert!(refused("a,b,y\n1,,0\n2,,1\n", &impute).contains("no value in any row"));
}

#[test]
fn a_column_may_turn_to_text_far_below() {
    // Nine of ten rows, in many blocks, look like numbers; or the other way round.
    let rows = 400_000;
    let late = |text: usize| -> String {
        let body: String = (0..rows)
            .map(|i| if i < text { format!("{},{}\n", i % 3, i % 2) } else { format!("c{},{}\n", i % 3, i % 2) })
            .collect();
        format!("a,y\n{body}")
    };
    let message = refused(&late(9 * rows / 10), &ReadOptions::default());
    assert!(message.starts_with("t.csv:360002:1: found `c"), "{message}");
    let data = table(&late(rows / 10));
    assert_eq!(data.feature_names().unwrap(), ["a=0", "a=1", "a=2", "a=c0", "a=c1", "a=c2", "a=other"]);
    assert_eq!(values(&data)[0][0], 1.0);
    assert_eq!(data.rows.rows(), rows);
}

#[test]
fn identifiers_are_remarked_on() {
    let text: String = (0..40).map(|i| format!("{},{},{}\n", 1000 + 7 * i, i % 4, i % 2)).collect();
    let data = table(&format!("id,a,y\n{text}"));
    assert_eq!(data.remarks.len(), 1);
    assert!(data.remarks[0].about.contains("`id`"), "{:?}", data.remarks);
    assert!(table("id,y\n1,0\n2,1\n").remarks.is_empty());
}

#[test]
fn headers_of_text_alone_are_seen() {
    let data = table("name,city,class\nAnn,Rome,a\nBob,Rome,b\nAnn,Bonn,a\nBob,Bonn,b\n");
    assert_eq!(data.schema.as_ref().unwrap().label.name.as_deref(), Some("class"));
    assert_eq!(data.rows.rows(), 4);
    let bare = table("Ann,Rome,a\nBob,Rome,b\nAnn,Bonn,a\nBob,Bonn,b\n");
    assert_eq!(bare.rows.rows(), 4);
}

#[test]
fn scales_that_are_very_unlike() {
    let unlike = unlike_scales(&table("a,b,c,y\n0,1,5,0\n1,9000,5,1\n0.5,3,5,1\n").rows).unwrap();
    assert_eq!((unlike.narrow, unlike.wide), ((0, 1.0), (1, 8999.0)));
    assert!(unlike_scales(&table("a,b,y\n0,1,0\n1,900,1\n").rows).is_none());
}
