//! What can be typed. The options of the machines are added from the library's list at start-up.

use crate::machines::{self, Given};
use crate::sheet::Style;
use crate::values::{self, ProtocolChoice, Scale};
use clap::{Args, CommandFactory, Parser, Subcommand};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use widemargin::calibration::ProbabilityForm;
use widemargin::data::{Format, IdColumn, Precision, ReadOptions, Storage};
use widemargin::kernel::KernelKind;
use widemargin::machine::{Bias, Machine, SolverChoice};
use widemargin::metrics::{Metric, ThresholdChoice};
use widemargin::multiclass::Multiclass;
use widemargin::select::{AverageOver, Plan, SearchRows, Select};
use widemargin::train::{ClassWeight, Gamma};

/// Margin-distribution learning: ODM, LDM, mcODM and MSVMAv beside SVMs, fast, and certified to the optimum.
#[derive(Parser)]
#[command(name = "widemargin", version, propagate_version = true, max_term_width = 110)]
#[command(
    after_help = "Start with `widemargin compare`: it needs no data. `widemargin help MACHINE` explains a machine."
)]
#[command(disable_help_subcommand = true)]
pub struct Cli {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Args)]
#[command(next_help_heading = "Common options")]
pub struct Common {
    /// Print one JSON object on standard output and nothing else there
    #[arg(long, global = true)]
    pub json: bool,
    /// Say nothing on standard error but errors
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Threads to use [default: all cores]; results do not depend on it
    #[arg(long, global = true, value_name = "N", value_parser = values::count, allow_hyphen_values = true)]
    pub threads: Option<NonZeroUsize>,
    /// Seed of everything random
    #[arg(long, global = true, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

#[derive(Subcommand)]
pub enum Command {
    /// Compare machines on the same random splits, side by side
    Compare(CompareArgs),
    /// Run a table of a paper and show our figures beside the paper's
    Reproduce(ReproduceArgs),
    /// Show how test accuracy changes with one parameter, or with the number of classes
    Sweep(SweepArgs),
    /// Fit one machine to a data file and write its model
    #[command(after_long_help = machines::summaries())]
    Train(TrainArgs),
    /// Search the parameters of a machine by rows left out, and fit the best
    #[command(after_long_help = machines::summaries())]
    Tune(TuneArgs),
    /// Score one machine at given parameters by rows left out, fold by fold
    #[command(after_long_help = machines::summaries())]
    CrossValidate(CrossValidateArgs),
    /// Cut a data file in two at random, each class alike: to train on and to test with
    Split(SplitArgs),
    /// Find the rows of a data file whose label is probably wrong, the most suspicious first
    Audit(AuditArgs),
    /// Show the margin distributions of models on a data file
    Margins(MarginsArgs),
    /// Predict the labels of a data file, and score them if it has labels
    Predict(PredictArgs),
    /// Recompute objective, dual bound and gap of a model from its training rows, and compare with what it claims
    Verify(VerifyArgs),
    /// Say what is in a model or data file
    Info(InfoArgs),
    /// List the weights of a linear model, the largest first
    Coefficients(CoefficientsArgs),
    /// Rewrite a data file in another format, or a model of LIBSVM or LIBLINEAR as one of ours
    Convert(ConvertArgs),
    /// Write a model as an ONNX graph, which other programs run
    Export(ExportArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write all pages into a folder
    Man {
        /// Folder for the pages of all commands
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
    /// Explain a machine (its formula, parameters, defaults, ranges and paper) or a command
    Help {
        /// A machine, such as odm, or a command, such as train
        #[arg(value_name = "MACHINE|COMMAND")]
        topic: Option<String>,
    },
}

/// How to read a data file.
#[derive(Args)]
#[command(next_help_heading = "Data")]
pub struct DataArgs {
    /// Format of DATA [default: by its ending, else libsvm]
    #[arg(long, value_parser = values::named::<Format>())]
    pub format: Option<Format>,
    /// Column of the labels, by name or number from 1; `none` if there is none [default: the model's, or one named label,
    /// class, target or y, or the last] (this and the next six: CSV, TSV, Parquet)
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// Columns to leave out, by name or number
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub drop: Vec<String>,
    /// Columns to take, by name or number, and no others [default: all]; of LIBSVM text a number: have at least so many
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub features: Vec<String>,
    /// Fill in missing values, by the median or the most frequent value, and add a feature that says where
    #[arg(long)]
    pub impute: bool,
    /// Character between fields, or `tab` [default: tab for TSV; for CSV , or ; or tab or |, as its first lines have it]
    #[arg(long, value_name = "C", value_parser = values::delimiter)]
    pub delimiter: Option<u8>,
    /// Whether the first row holds names [default: if it looks like it]
    #[arg(long, value_name = "yes|no", value_parser = values::yes_or_no)]
    pub header: Option<bool>,
    /// Precision of the values
    #[arg(long, value_parser = values::named::<Precision>(), default_value = "auto", value_name = "auto|f32|f64")]
    #[arg(hide_possible_values = true)]
    pub precision: Precision,
    /// How rows are held in memory
    #[arg(long, value_parser = values::named::<Storage>(), default_value = "auto", value_name = "auto|dense|sparse")]
    #[arg(hide_possible_values = true)]
    pub storage: Storage,
}

impl DataArgs {
    /// The library's options.
    pub fn options(&self) -> ReadOptions {
        ReadOptions {
            format: self.format,
            label: self.label.clone(),
            precision: self.precision,
            storage: self.storage,
            features: match self.features.as_slice() {
                [number] => number.parse().ok(),
                _ => None,
            },
            header: self.header,
            delimiter: self.delimiter,
            drop: self.drop.clone(),
            keep: self.features.clone(),
            impute: self.impute,
            any_label: false,
            id: IdColumn::None,
            schema: None,
        }
    }
}

/// How to fit, whatever the machine.
#[derive(Args, Clone)]
pub struct FitArgs {
    /// Kernel
    #[arg(long, value_parser = values::named::<KernelKind>(), default_value = "linear", help_heading = "Kernel")]
    pub kernel: KernelKind,
    /// γ: a number, `scale` = 1/(features · variance) or `auto` = 1/features [default: scale]
    #[arg(long, value_parser = values::read::<Gamma>, allow_hyphen_values = true, help_heading = "Kernel")]
    pub gamma: Option<Gamma>,
    /// Degree p of the poly kernel [default: 3]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..65536), help_heading = "Kernel")]
    pub degree: Option<u32>,
    /// Constant r of the poly and sigmoid kernels [default: 0]
    #[arg(long, value_parser = values::finite, allow_hyphen_values = true, help_heading = "Kernel")]
    pub coef0: Option<f64>,
    /// Intercept: free, none, or the value B of an appended constant feature
    #[arg(long, value_name = "free|none|B", value_parser = values::read::<Bias>, default_value = "free")]
    #[arg(allow_hyphen_values = true, help_heading = "Fit")]
    pub bias: Bias,
    /// How a machine meets more than two classes [default: own if it can, else ova]
    #[arg(long, value_parser = values::named::<Multiclass>(), help_heading = "Fit")]
    pub multiclass: Option<Multiclass>,
    /// Solver
    #[arg(long, value_parser = values::named::<SolverChoice>(), default_value = "auto", help_heading = "Fit")]
    pub solver: SolverChoice,
    /// Relative duality gap to reach [default: 1e-3]
    #[arg(long, value_name = "T", value_parser = values::positive, allow_hyphen_values = true, help_heading = "Fit")]
    pub tol: Option<f64>,
    /// Most iterations [default: the solver's own limit]
    #[arg(long, value_name = "N", value_parser = values::count, allow_hyphen_values = true, help_heading = "Fit")]
    pub max_iter: Option<NonZeroUsize>,
    /// Memory for kernel rows, such as 512M or 2G [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = values::memory, allow_hyphen_values = true, help_heading = "Fit")]
    pub memory: Option<u64>,
}

/// What `train` and `tune` learn from, and how.
#[derive(Args)]
pub struct LearnArgs {
    /// Data to learn from: LIBSVM text, CSV, TSV or Parquet, also .gz, .zst, .xz; `-` is standard input; or the
    /// name of a set inside the program (wdbc, sonar, iris, wine, digits)
    #[arg(index = 1)]
    pub data: String,
    /// Machine [default: odm; for more than two classes mcodm]
    #[arg(long, short, value_parser = machines::named())]
    pub machine: Option<&'static Machine>,
    #[command(flatten)]
    pub fit: FitArgs,
    /// Scaling of the features, fitted on the training rows (in a search, on those of each fold) and kept in the model
    /// [default: standard for tables (CSV, TSV, Parquet), none for LIBSVM text and the sets inside the program]
    #[arg(long, value_parser = values::scale(), help_heading = "Fit")]
    pub scale: Option<Scale>,
    /// Weights of the classes: `balanced` for m / (classes · rows of the class), or LABEL=W,… [default: all 1]
    #[arg(long, value_name = "WEIGHTS", value_parser = values::read::<ClassWeight>, allow_hyphen_values = true)]
    #[arg(help_heading = "Fit")]
    pub class_weight: Option<ClassWeight>,
    /// File with the weight of each row, one a line; a row of weight s counts as s rows
    #[arg(long, value_name = "FILE", help_heading = "Fit")]
    pub weights: Option<PathBuf>,
    /// Also learn probabilities, from leave-one-out margins or five folds: by slope and offset, or by any curve that rises with the
    /// score
    #[arg(long, help_heading = "Fit", value_parser = values::named::<ProbabilityForm>(), num_args = 0..=1)]
    #[arg(require_equals = true, default_missing_value = "sigmoid", value_name = "sigmoid|isotonic")]
    pub probability: Option<ProbabilityForm>,
    /// Score above which the larger of two labels is predicted: a number, or accuracy, balanced_accuracy, f1, precision or
    /// recall for the one that makes it best for rows left out (leave-one-out margins or five folds) [default: 0]
    #[arg(long, value_name = "T|SCORE", value_parser = values::read::<ThresholdChoice>, allow_hyphen_values = true)]
    #[arg(help_heading = "Fit")]
    pub threshold: Option<ThresholdChoice>,
    #[command(flatten)]
    pub given: Given,
    #[command(flatten)]
    pub input: DataArgs,
}

#[derive(Args)]
pub struct TrainArgs {
    /// Where to write the model
    #[arg(index = 2)]
    pub model: PathBuf,
    /// Replace the kernel by a map of at most RANK landmark rows, for data with too many rows for the kernel itself; the
    /// share of the kernel that is lost is told
    #[arg(long, value_name = "RANK", value_parser = values::count, allow_hyphen_values = true, help_heading = "Kernel")]
    pub approx: Option<NonZeroUsize>,
    /// Fail, and write no model, if the tolerance is not reached
    #[arg(long, help_heading = "Fit")]
    pub strict: bool,
    /// Where to write the margin of each row under a model that did not see it, one a line: each left out in turn, in closed
    /// form (odm, lssvm, l2svm), else from five folds, which is told; `-` is standard output
    #[arg(long, value_name = "FILE", help_heading = "Fit")]
    pub loo: Option<PathBuf>,
    #[command(flatten)]
    pub learn: LearnArgs,
}

/// What an average takes all of, or has no use for.
const AVERAGED_ANYWAY: [&str; 14] = [
    "grid",
    "select",
    "score",
    "folds",
    "repeats",
    "resume",
    "report",
    "kernel",
    "gamma",
    "degree",
    "coef0",
    "solver",
    "max_iter",
    "multiclass",
];

#[derive(Args)]
pub struct TuneArgs {
    /// Where to write the model of the best point, fitted on all rows
    #[arg(index = 2)]
    pub model: Option<PathBuf>,
    /// What to try: `paper` for every point of the papers' grid, or NAME=VALUES,… with VALUES as 2^0:2^10 (doubling),
    /// 1:1024:*4, 0:0.5:0.1 or 1;10;100, and gamma for the kernel's γ; parameters not named keep their value
    /// [default: from coarse to fine on the machine's own grid]
    #[arg(long, value_name = "GRID", value_parser = machines::plan, help_heading = "Search")]
    pub grid: Option<Plan>,
    /// Folds of cross-validation
    #[arg(long, value_name = "K", value_parser = values::folds, default_value = "5", allow_hyphen_values = true)]
    #[arg(help_heading = "Search")]
    pub folds: NonZeroUsize,
    /// How often rows are dealt into folds
    #[arg(long, value_name = "N", value_parser = values::count, default_value = "1", allow_hyphen_values = true)]
    #[arg(help_heading = "Search")]
    pub repeats: NonZeroUsize,
    /// What decides [default: loo-loss for odm, lssvm, l2svm with two classes, else cv; cv as well where that can judge on all
    /// rows and loo-loss cannot]
    #[arg(long, value_parser = values::named::<Select>(), help_heading = "Search")]
    pub select: Option<Select>,
    /// Score that decides, of rows left out (from leave-one-out margins where the machine has them, else the mean of the
    /// folds) [default: the error, or what --select says]
    #[arg(long, value_parser = values::named::<Metric>(), help_heading = "Search")]
    pub score: Option<Metric>,
    /// Judge points on at most this many of the rows, drawn from each class alike, or on all; the chosen one is fitted on
    /// all. auto: on as many as can be judged in about a minute
    #[arg(long, value_name = "N|all|auto", value_parser = values::read::<SearchRows>, default_value = "auto")]
    #[arg(allow_hyphen_values = true, hide_default_value = true, help_heading = "Search")]
    pub search_rows: SearchRows,
    /// Average all points over twelve kernels (linear, five widths of rbf, laplacian; linear, three widths of rbf and laplacian of
    /// the ranks) and eleven strengths, weighted by their leave-one-out loss (odm, lssvm, l2svm) or that of five folds (svm, ldm,
    /// odm-l, svr, huber-svm), instead of taking the best of one kernel; features are scaled by minmax unless --scale says otherwise
    #[arg(long, help_heading = "Search", conflicts_with_all = AVERAGED_ANYWAY)]
    #[arg(value_parser = values::named::<AverageOver>(), num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "ranks", value_name = "ranks|values")]
    pub average: Option<AverageOver>,
    /// Log of finished points: those in it are not tried again, new ones are added
    #[arg(long, value_name = "FILE", help_heading = "Search")]
    pub resume: Option<PathBuf>,
    /// Where to write a page: what was found, maps of the parameters, every point that was tried
    #[arg(long, value_name = "FILE.html", help_heading = "Search")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub learn: LearnArgs,
}

#[derive(Args)]
pub struct AuditArgs {
    /// Tell of at most so many rows [default: 20 in the table, all in JSON and the file, on the page as many as are expected to be
    /// wrong, but 20 to 500]
    #[arg(long, value_name = "N", value_parser = values::count, allow_hyphen_values = true)]
    pub top: Option<NonZeroUsize>,
    /// Where to write all that is found, as CSV; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Where to write a page: how many labels are expected to be wrong, which, their margins among those of all rows, how well the
    /// probabilities hold
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub learn: LearnArgs,
}

#[derive(Args)]
pub struct CrossValidateArgs {
    /// Folds
    #[arg(long, short = 'v', value_name = "K", value_parser = values::folds, default_value = "5")]
    #[arg(allow_hyphen_values = true, help_heading = "Validation")]
    pub folds: NonZeroUsize,
    /// How often rows are dealt into folds
    #[arg(long, value_name = "N", value_parser = values::count, default_value = "1", allow_hyphen_values = true)]
    #[arg(help_heading = "Validation")]
    pub repeats: NonZeroUsize,
    #[command(flatten)]
    pub learn: LearnArgs,
}

#[derive(Args)]
pub struct SplitArgs {
    /// Rows with labels: LIBSVM text, CSV or TSV; `-` is standard input
    pub data: String,
    /// File for the rows to train on, copied as they are written; packed if it ends with .gz, .zst or .xz
    pub train: PathBuf,
    /// File for the rows to test with
    pub test: PathBuf,
    /// Share of the rows to test with
    #[arg(long, value_name = "SHARE", value_parser = values::share, default_value = "0.3", allow_hyphen_values = true)]
    pub test_size: f64,
    #[command(flatten)]
    pub input: DataArgs,
}

#[derive(Args)]
pub struct MarginsArgs {
    /// Rows with labels; `-` is standard input
    pub data: String,
    /// Models from `widemargin train` or `tune`
    #[arg(required = true, value_name = "MODEL")]
    pub models: Vec<PathBuf>,
    /// Where to write the picture of the cumulative distributions, as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Where to write a page: margin curves with their values, ROC and calibration curves, certificates
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Draw the margins themselves, not divided by ‖w‖
    #[arg(long)]
    pub raw: bool,
    #[command(flatten)]
    pub input: DataArgs,
}

#[derive(Args)]
pub struct PredictArgs {
    /// Rows to predict; `-` is standard input
    pub data: String,
    /// Model from `widemargin train`
    pub model: PathBuf,
    /// Where to write the labels, one a line [default: standard output]
    pub out: Option<PathBuf>,
    /// Where to write the decision values: one row a line, one column for two classes, else one a class;
    /// `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub scores: Option<PathBuf>,
    /// Where to write the probabilities: a line with the labels, then one row a line, one column a class (for models trained
    /// with --probability); `-` is standard output
    #[arg(long, value_name = "FILE", visible_alias = "probability")]
    pub probabilities: Option<PathBuf>,
    /// Share of rows whose label is to be in its prediction set, such as 0.9
    #[arg(long, value_name = "SHARE", value_parser = values::share, allow_hyphen_values = true, requires = "sets")]
    pub coverage: Option<f64>,
    /// Where to write the prediction sets, one row a line, labels separated by spaces; `-` is standard output
    #[arg(long, value_name = "FILE", requires = "coverage")]
    pub sets: Option<PathBuf>,
    /// Have that share of the rows of each class, not only of all rows
    #[arg(long, requires = "sets")]
    pub per_class: bool,
    /// Column that tells rows apart, for OUT as a table [default: one named id that is no feature]
    #[arg(long, value_name = "COLUMN")]
    pub id: Option<String>,
    #[command(flatten)]
    pub input: DataArgs,
}

#[derive(Args)]
pub struct VerifyArgs {
    /// The rows the model was trained on; `-` is standard input
    pub data: String,
    /// Model from `widemargin train` or `tune`
    pub model: PathBuf,
    /// File with the weight of each row, one a line, if the model was trained with one
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    #[command(flatten)]
    pub input: DataArgs,
}

#[derive(Args)]
pub struct InfoArgs {
    /// A model or a data file
    #[arg(value_name = "MODEL|DATA")]
    pub file: String,
    #[command(flatten)]
    pub input: DataArgs,
}

#[derive(Args)]
pub struct CoefficientsArgs {
    /// A linear model
    pub model: PathBuf,
    /// Only so many, the largest
    #[arg(long, value_name = "N", value_parser = values::count, allow_hyphen_values = true)]
    pub top: Option<NonZeroUsize>,
    /// How the table is printed
    #[arg(long, value_enum, default_value = "text")]
    pub style: Style,
}

#[derive(Args)]
pub struct ExportArgs {
    /// Model from `widemargin train` or `tune`
    pub model: PathBuf,
    /// ONNX file to write; `-` is standard output
    #[arg(value_name = "OUT.onnx")]
    pub out: PathBuf,
    /// Take the features in single precision; the graph computes in double precision either way
    #[arg(long)]
    pub single: bool,
}

#[derive(Args)]
pub struct ConvertArgs {
    /// File to read: data, or a model of LIBSVM or LIBLINEAR; `-` is standard input
    #[arg(value_name = "IN")]
    pub from: String,
    /// File to write; its ending tells the format and the packing; `-` is standard output
    #[arg(value_name = "OUT")]
    pub to: PathBuf,
    /// Format of OUT [default: by its ending]
    #[arg(long, value_parser = values::named::<Format>(), value_name = "FORMAT")]
    pub to_format: Option<Format>,
    #[command(flatten)]
    pub input: DataArgs,
}

/// Who competes, and how their parameters are found.
#[derive(Args)]
#[command(next_help_heading = "Machines and their search")]
pub struct ContestArgs {
    /// Machines; after colons a kernel, a way to meet more classes, what decides in the search, what is searched, or values
    /// of parameters: odm:rbf, svm:ovo, odm:loo-loss, svm:fixed, svm:c=10, odm:c1=1;10:d=0:0.4:0.2
    #[arg(long, value_delimiter = ',', value_name = "A,B,…", default_value = "odm,ldm,svm")]
    pub machines: Vec<String>,
    /// Kernels: every machine with each [default: --kernel]
    #[arg(long, value_parser = values::named::<KernelKind>(), value_delimiter = ',', value_name = "A,B,…")]
    pub kernels: Vec<KernelKind>,
    /// Points that every machine may try, drawn at random from its own grid
    #[arg(long, value_name = "N", value_parser = values::count, default_value = "20", allow_hyphen_values = true)]
    pub budget: NonZeroUsize,
    /// What is tried instead of a budget: `paper` or `staged` for all machines, or MACHINE:GRID for one, with GRID as in
    /// `tune`; may be repeated
    #[arg(long, value_name = "GRID")]
    pub grid: Vec<String>,
    /// Judge points on at most this many of the rows, drawn from each class alike; the chosen one is fitted on all
    #[arg(long, value_name = "N", value_parser = values::count, allow_hyphen_values = true)]
    pub search_rows: Option<NonZeroUsize>,
    /// Search nothing: every machine with its defaults and what --set says
    #[arg(long, conflicts_with = "grid")]
    pub fixed: bool,
    /// What decides in the searches [default: cv]
    #[arg(long, value_parser = values::named::<Select>())]
    pub select: Option<Select>,
    /// Folds of cross-validation in the searches
    #[arg(long, value_name = "K", value_parser = values::count, default_value = "5", allow_hyphen_values = true)]
    pub folds: NonZeroUsize,
    /// Set a machine's parameter, such as odm.c1=10; may be repeated
    #[arg(long, value_name = "MACHINE.PARAMETER=VALUE", value_parser = values::setting)]
    pub set: Vec<String>,
}

/// A study of machines on random splits.
#[derive(Args)]
pub struct StudyArgs {
    #[command(flatten)]
    pub contest: ContestArgs,
    /// Random splits of each data set
    #[arg(long, value_name = "N", value_parser = values::count, default_value = "10", allow_hyphen_values = true)]
    pub repeats: NonZeroUsize,
    /// Share of the rows to train on
    #[arg(long, value_name = "SHARE", value_parser = values::share, default_value = "0.5")]
    #[arg(allow_hyphen_values = true)]
    pub train: f64,
    /// File that keeps every result as it comes: those in it are not computed again
    #[arg(long, value_name = "FILE")]
    pub results: Option<PathBuf>,
    /// How the tables are printed
    #[arg(long, value_enum, default_value = "text")]
    pub style: Style,
    #[command(flatten)]
    pub fit: FitArgs,
    /// Scaling of the features, fitted on the training rows of each split [default: standard for tables (CSV, TSV,
    /// Parquet); else minmax, as in the papers, where `train` has none]
    #[arg(long, value_parser = values::scale(), help_heading = "Fit")]
    pub scale: Option<Scale>,
    #[command(flatten)]
    pub input: DataArgs,
}

#[derive(Args)]
pub struct CompareArgs {
    /// Data files, or names of sets inside the program [default: those of two classes: wdbc, sonar]
    pub data: Vec<String>,
    /// Machine the others are tested against [default: svm, else the last one]
    #[arg(long, value_name = "MACHINE")]
    pub reference: Option<String>,
    /// Where to write a page: what came out, tables that sort, accuracies by split, ranks, margin curves with their values
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub study: StudyArgs,
}

#[derive(Args)]
pub struct ReproduceArgs {
    /// The table: ldm-table2, ldm-table3, ldm-table4, odm-table2, odm-table3, odm-table4, mcodm-table2, msvmav-table1 or
    /// msvmav-table2
    pub table: String,
    /// Folder with the data sets, one file each, named as in the table
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Only these data sets of the table
    #[arg(long, value_delimiter = ',', value_name = "A,B,…")]
    pub only: Vec<String>,
    /// Leave out data sets with more rows
    #[arg(long, value_name = "N")]
    pub max_rows: Option<usize>,
    /// Random splits [default: the paper's]
    #[arg(long, value_name = "N", value_parser = values::count, allow_hyphen_values = true)]
    pub repeats: Option<NonZeroUsize>,
    /// What the machines may try
    #[arg(long, value_enum, default_value = "paper")]
    pub protocol: ProtocolChoice,
    /// Points of every machine with --protocol equal
    #[arg(long, value_name = "N", value_parser = values::count, default_value = "50", allow_hyphen_values = true)]
    pub budget: NonZeroUsize,
    /// Factor from one value of a grid to the next where the paper does not state it
    #[arg(long, value_name = "F", value_parser = values::above_one, default_value = "4", allow_hyphen_values = true)]
    pub step: f64,
    /// Relative duality gap to reach
    #[arg(long, value_name = "T", value_parser = values::positive, default_value = "1e-3", allow_hyphen_values = true)]
    pub tol: f64,
    /// Most iterations of a fit of a search; the final fits have the solvers' own limits
    #[arg(long, value_name = "N", value_parser = values::count, allow_hyphen_values = true)]
    pub search_iter: Option<NonZeroUsize>,
    /// Judge points on at most this many of the rows, drawn from each class alike; the chosen one is fitted on all
    #[arg(long, value_name = "N", value_parser = values::count, allow_hyphen_values = true)]
    pub search_rows: Option<NonZeroUsize>,
    /// File that keeps every result as it comes: those in it are not computed again
    #[arg(long, value_name = "FILE")]
    pub results: Option<PathBuf>,
    /// How the table is printed; csv has one line a figure
    #[arg(long, value_enum, default_value = "text")]
    pub style: Style,
}

#[derive(Args)]
pub struct SweepArgs {
    /// Data files, or names of sets inside the program
    #[arg(required = true)]
    pub data: Vec<String>,
    /// What changes: a parameter of the machines or gamma, as NAME=VALUES in the syntax of `tune --grid`; or classes=2:7,
    /// the number of classes, of which the first so many are taken
    #[arg(long, value_name = "NAME=VALUES")]
    pub over: String,
    /// Where to write the picture, as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Where to write a page: what came out, the picture with its values, the table
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub study: StudyArgs,
}

/// The whole command.
pub fn command() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_is_well_formed() {
        super::command().debug_assert();
    }
}
