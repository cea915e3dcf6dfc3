//! From rows to a certified model: `cargo run --release --example train`.

use widemargin::data::train_test;
use widemargin::prelude::*;

fn main() -> widemargin::Result<()> {
    let data = embedded("sonar").expect("a set inside the crate");
    let labels = data.labels.as_ref().expect("a set with labels");
    let (train, test) = train_test(labels, 0.7, 0, 0);
    let part =
        |rows: &[usize]| Dataset { rows: data.rows.select(rows), labels: Some(labels.select(rows)), ..data.clone() };
    let (train, test) = (part(&train), part(&test));
    let tuned = Odm::new().kernel(Rbf::scale()).scale(ScalingKind::MinMax).tune(&train)?;
    let model = tuned.model;
    let truth = test.labels.as_ref().map(|labels| labels.codes_in(&model.labels)).unwrap_or_default();
    let right = model.predict(&test.rows)?.iter().zip(&truth).filter(|(p, t)| Some(**p) == **t).count();
    println!("{right} of {} rows right, {} points tried", truth.len(), tuned.trials.len());
    println!("objective {:?}, duality gap {:?}", model.certificate.objective, model.certificate.gap);
    Ok(())
}
