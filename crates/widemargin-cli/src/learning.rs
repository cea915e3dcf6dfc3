//! What `train` and `tune` begin with: options checked, rows and weights read, the machine chosen, the clock running.

use crate::args::LearnArgs;
use crate::failure::Outcome;
use crate::files::{fit_options, read_data, read_weights};
use crate::machines;
use crate::output::{Output, short};
use crate::places::Places;
use crate::resources::Clock;
use crate::values::Scale;
use widemargin::Result;
use widemargin::calibration::Unseen;
use widemargin::control::Control;
use widemargin::data::{Dataset, Examples, ScalingKind, unlike_scales};
use widemargin::kernel::Kernel;
use widemargin::machine::{Machine, Outcome as Fitted};
use widemargin::model::Model;
use widemargin::multiclass::Multiclass;
use widemargin::select::{Learned, Tuned, learn_unseen};
use widemargin::train::{TrainOptions, check_rows};

/// The machine if nobody names one.
const TWO_CLASSES: &str = "odm";
/// The same for more than two classes.
const MORE_CLASSES: &str = "mcodm";

/// Rows to learn from, and how to.
pub struct Lesson {
    pub data: Dataset,
    /// The weight of each row, if a file has them.
    pub weights: Option<Vec<f64>>,
    pub options: TrainOptions,
    /// What a model is to learn besides.
    pub learned: Learned,
    /// Has run while the rows were read.
    pub clock: Clock,
}

impl Lesson {
    /// Finds wrong options and places before a large file is read, then reads it. `check` is what a command has to say of
    /// the options besides.
    pub fn read(
        args: &LearnArgs,
        seed: u64,
        places: Places,
        check: &dyn Fn(&TrainOptions) -> Result<()>,
        output: &Output,
    ) -> Outcome<Self> {
        let candidate = |machine| options(args, machine, None, seed).and_then(|options| check(&options));
        match args.machine {
            Some(machine) => candidate(machine)?,
            // Which of the two it will be is known once the classes are counted.
            None => candidate(machines::find(TWO_CLASSES)?)
                .or_else(|error| candidate(machines::find(MORE_CLASSES)?).map_err(|_| error))?,
        }
        args.weights.iter().fold(places.reads(&args.data), Places::reads).check()?;
        let mut clock = Clock::start();
        let data = read_data(&args.data, &args.input, output)?;
        let weights = args.weights.as_ref().map(|path| read_weights(path, data.rows.rows())).transpose()?;
        let machine = choose(args, &data)?;
        // Of rows that no machine could use, that is the first thing to say.
        machines::check_uses(&[machine], &args.fit)
            .or_else(|error| check_rows(&data.name, &data.rows).and(Err(error)))?;
        let options = options(args, machine, Scale::usual(args.scale, &data, None), seed)?;
        warn_of_scales(&data, &options, output);
        clock.lap("read");
        let learned = Learned { margins: false, probability: args.probability, threshold: args.threshold };
        Ok(Self { data, weights, options, learned, clock })
    }

    /// The labelled rows.
    pub fn examples(&self) -> Result<Examples<'_>> {
        Examples::of(&self.data)
    }

    /// The scores of rows that the final fit of a search left out of its own model in turn, if it could.
    pub fn unseen(&self, tuned: &Tuned) -> Option<Unseen> {
        let labels = self.data.labels.as_ref()?;
        let given = self.weights.clone().unwrap_or_else(|| vec![1.0; self.data.rows.rows()]);
        Unseen::left_out(&tuned.model, &tuned.outcome, labels, &given)
    }

    /// Adds to a model that was fitted with these options what it was asked to learn besides; hands back what that is made of.
    pub fn learn_unseen(
        &self,
        options: &TrainOptions,
        fitted: (&mut Model, &Fitted),
        control: Control<'_>,
    ) -> Result<Option<Unseen>> {
        learn_unseen(self.examples()?, self.weights.as_deref(), options, self.learned, fitted, control)
    }
}

/// The library's options for rows that stay on the disk: ODM, one against all, unless another machine is asked for.
pub fn options_from_disk(args: &LearnArgs, seed: u64) -> Result<TrainOptions> {
    let machine = args.machine.map_or_else(|| machines::find(TWO_CLASSES), Ok)?;
    machines::check_uses(&[machine], &args.fit)?;
    options(args, machine, args.scale.and_then(Scale::kind), seed)
}

/// The library's options for this machine.
fn options(
    args: &LearnArgs,
    machine: &'static Machine,
    scaling: Option<ScalingKind>,
    seed: u64,
) -> Result<TrainOptions> {
    let parameters = machines::check(machine, &args.given.0)?;
    let options = fit_options(machine, parameters, &args.fit, scaling, seed)?;
    Ok(TrainOptions { class_weight: args.class_weight.clone().unwrap_or_default(), ..options })
}

/// Warns of a kernel that would see next to nothing but the widest features.
fn warn_of_scales(data: &Dataset, options: &TrainOptions, output: &Output) {
    let unlike =
        if options.kernel == Kernel::Linear || options.scaling.is_some() { None } else { unlike_scales(&data.rows) };
    if let Some(unlike) = unlike {
        let names = data.feature_names();
        let name = |j: usize| names.as_ref().map_or_else(|| (j + 1).to_string(), |names| names[j].clone());
        output.warn(&format!(
            "features are of very unlike scales: {} spans {}, {} spans {}; the kernel hardly sees the narrow ones: use --scale \
             standard or --scale minmax",
            name(unlike.narrow.0),
            short(unlike.narrow.1),
            name(unlike.wide.0),
            short(unlike.wide.1),
        ));
    }
}

/// The machine that was asked for, or the one that suits the classes of the data.
fn choose(args: &LearnArgs, data: &Dataset) -> Result<&'static Machine> {
    let classes = data.labels.as_ref().map_or(0, |labels| labels.names().len());
    let wrapped = args.fit.multiclass.is_some_and(|mode| mode != Multiclass::Own);
    match args.machine {
        Some(machine) => Ok(machine),
        None if classes > 2 && !wrapped => machines::find(MORE_CLASSES),
        None => machines::find(TWO_CLASSES),
    }
}
