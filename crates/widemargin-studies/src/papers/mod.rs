//! The tables of the papers: what was tried there, on what, and the figures that were printed.
//!
//! Where a paper does not say something, the table's [`notes`](PaperTable::notes) say what is taken here.

mod find;
mod reproduction;

pub use find::{Found, Located, Missing, Set, locate};
pub use reproduction::{Agreement, Budget, Cell, Reproduction};

use crate::compare::Verdict;
use crate::contestant::{Common, Contestant, Tries};
use crate::statistics::{Sample, welch_test};
use csv::StringRecord;
use widemargin::data::{Dataset, ScalingKind};
use widemargin::kernel::Kernel;
use widemargin::machine::{Bias, SolverChoice, check_parameters, machine};
use widemargin::multiclass::Multiclass;
use widemargin::select::{Grid, Plan, Select};
use widemargin::solver::Settings;
use widemargin::train::{ClassWeight, Gamma, TrainOptions};
use widemargin::{Error, Result};

/// Folds of every paper's cross-validation.
const FOLDS: usize = 5;
/// Differences between our figures and printed ones that are less likely than this by chance are marked.
pub const DIFFERENT: f64 = 0.01;

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// What the paper calls the machine.
    pub name: &'static str,
    /// What it is called here.
    pub machine: &'static str,
    /// How it meets more than two classes.
    pub multiclass: Option<Multiclass>,
    /// The intercept.
    pub bias: Bias,
    /// The paper's grid; empty if nothing is searched. `~` stands for a step that the paper does not state, `@` for the
    /// powers of four from `2^-10` to `2^10`.
    grid: &'static str,
}

/// In which direction a table's marks point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marks {
    /// The row's machine is better or worse than the reference.
    OfTheMachine,
    /// The reference is better or worse than the row's machine.
    OfTheReference,
}

/// A table of a paper.
#[derive(Clone, Copy, Debug)]
pub struct PaperTable {
    /// Its name on the command line, such as `odm-table2`.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// The kernel; `γ` is searched.
    pub kernel: Kernel,
    /// Share of the rows to train on.
    pub train: f64,
    /// Random splits.
    pub repeats: usize,
    /// Number of classes, if every data set has the same.
    pub classes: Option<usize>,
    /// The machine the others are tested against.
    pub reference: &'static str,
    /// The machines.
    pub columns: &'static [Column],
    /// Whether a file `NAME.t` belongs to the set: the paper splits training and test file together.
    pub joined: bool,
    /// What the paper leaves open, and what is taken here.
    pub notes: &'static str,
    marks: Marks,
    /// Half a unit of the last printed digit.
    rounding: f64,
    /// What printed figures are divided by to be fractions.
    unit: f64,
    figures: &'static str,
    datasets: &'static str,
}

/// A printed figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The data set as the table calls it.
    pub dataset: String,
    /// The machine as the table calls it.
    pub method: String,
    /// Mean test accuracy as a fraction; `None` where the table says N/A.
    pub mean: Option<f64>,
    /// Its standard deviation.
    pub deviation: f64,
    /// Against the reference.
    pub verdict: Verdict,
}

/// The size of a data set as a paper states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stated {
    /// Rows.
    pub rows: usize,
    /// Features.
    pub features: usize,
}

/// How a table is run.
#[derive(Clone, Copy, Debug)]
pub struct Conduct {
    /// Points that every machine may try, drawn from its own grid, intercepts free; `None`: the paper's protocol.
    pub budget: Option<usize>,
    /// The factor from one value to the next where a paper does not state it.
    pub step: f64,
    /// Most iterations of a fit of a search.
    pub search_iterations: Option<usize>,
    /// Most rows on which a search judges its points.
    pub search_rows: Option<usize>,
    /// Tolerance, limits, memory, seed.
    pub settings: Settings,
}

const fn column(name: &'static str, machine: &'static str, bias: Bias, grid: &'static str) -> Column {
    Column { name, machine, multiclass: None, bias, grid }
}

const fn wrapped(name: &'static str, multiclass: Multiclass) -> Column {
    Column { name, machine: "svm", multiclass: Some(multiclass), bias: Bias::None, grid: "c=2^0:2^20:*4" }
}

const ONE: Bias = Bias::Feature(1.0);

const LDM_NOTES: &str = "Not stated, taken here: scaling fitted on the training rows; stratified splits; steps of lambda1 and \
     lambda2; width s means exp(-r^2/(2 s^2)); under the paper's protocol no intercept (the printed figures of fourclass are those of an SVM without \
     one), but MDO and KM-OMD have what their definitions have. KM-OMD's C is not a parameter of its definition: lambda in {0, 0.1, 0.5} stands for it. MDO's \
     recommended parameters are not at hand: a and b are searched.";

const ODM_NOTES: &str = "Not stated, taken here: scaling fitted on the training rows; stratified splits; steps of lambda1, \
     lambda2, C1 and C2; width s means exp(-r^2/(2 s^2)); under the paper's protocol no intercept (the printed figures of fourclass are those of an SVM \
     without one), but LDA has a threshold. \
     ODM^L is LDM as its own paper writes it: the figures of the two papers are the same. LDA has a fixed small ridge.";

const MCODM_NOTES: &str = "Not stated, taken here: scaling fitted on the training rows; stratified splits; under the paper's protocol no intercept. mcODM \
     freezes the rival's class in each round, which never raises its objective.";

const MSVMAV_NOTES: &str = "Not stated, taken here: scaling fitted on the training rows; stratified splits; epsilon of SVR 0.1; \
     ODM by lambda in the paper's grid, mu in {0.4, 0.8}, theta in {0.2, 0.4}; FMM and MAMC without a search.";

/// Every table there is.
pub static TABLES: &[PaperTable] = &[
    PaperTable {
        name: "ldm-table2",
        title: "LDM, Table 2: linear kernel, half of the rows to train on",
        kernel: Kernel::Linear,
        columns: &[
            column("SVM", "svm", Bias::None, "c=10;50;100"),
            column("MDO", "mdo", Bias::Free, "a=2.5;10;40,b=0.5;2;8"),
            column("MAMC", "mamc", Bias::None, ""),
            column("KM-OMD", "km-omd", Bias::Free, "lambda=0;0.1;0.5"),
            column("LDM", "ldm", Bias::None, "c=10;50;100,lambda1=2^-8:2^-2~,lambda2=2^-8:2^-2~"),
        ],
        figures: include_str!("../../data/papers/ldm-table2-linear.csv"),
        ..LDM
    },
    PaperTable {
        name: "ldm-table3",
        title: "LDM, Table 3: RBF kernel, half of the rows to train on",
        kernel: RBF,
        columns: &[
            column("SVM", "svm", Bias::None, "c=10;50;100,gamma=widths"),
            column("MAMC", "mamc", Bias::None, "gamma=widths"),
            column("KM-OMD", "km-omd", Bias::Free, "lambda=0;0.1;0.5,gamma=widths"),
            column("LDM", "ldm", Bias::None, "c=10;50;100,lambda1=2^-8:2^-2~,lambda2=2^-8:2^-2~,gamma=widths"),
        ],
        figures: include_str!("../../data/papers/ldm-table3-rbf.csv"),
        ..LDM
    },
    PaperTable {
        name: "ldm-table4",
        title: "LDM, Table 4: large data sets, linear kernel, half of the rows to train on",
        kernel: Kernel::Linear,
        repeats: 10,
        columns: &[
            column("SVM", "svm", Bias::None, "c=10;50;100"),
            column("MDO", "mdo", Bias::Free, "a=2.5;10;40,b=0.5;2;8"),
            column("MAMC", "mamc", Bias::None, ""),
            column("LDM", "ldm", Bias::None, "c=10;50;100,lambda1=2^-8:2^-2~,lambda2=2^-8:2^-2~"),
        ],
        figures: include_str!("../../data/papers/ldm-table4-large.csv"),
        ..LDM
    },
    PaperTable {
        name: "odm-table2",
        title: "ODM, Table 2: linear kernel, half of the rows to train on",
        kernel: Kernel::Linear,
        columns: &[
            column("SVM", "svm", Bias::None, "c=10;50;100"),
            column("LDA", "lda", Bias::Free, ""),
            column("ODM^L", "ldm", Bias::None, "c=10;50;100,lambda1=2^-8:2^-2~,lambda2=2^-8:2^-2~"),
            column("ODM", "odm", Bias::None, "c1=2^0:2^10~,c2=2^0:2^10~,d=0:0.5:0.1"),
        ],
        figures: include_str!("../../data/papers/odm-table2-linear.csv"),
        ..ODM
    },
    PaperTable {
        name: "odm-table3",
        title: "ODM, Table 3: RBF kernel, half of the rows to train on",
        kernel: RBF,
        columns: &[
            column("SVM", "svm", Bias::None, "c=10;50;100,gamma=widths"),
            column("LDA", "lda", Bias::Free, "gamma=widths"),
            column("ODM^L", "ldm", Bias::None, "c=10;50;100,lambda1=2^-8:2^-2~,lambda2=2^-8:2^-2~,gamma=widths"),
            column("ODM", "odm", Bias::None, "c1=2^0:2^10~,c2=2^0:2^10~,d=0:0.5:0.1,gamma=widths"),
        ],
        figures: include_str!("../../data/papers/odm-table3-rbf.csv"),
        ..ODM
    },
    PaperTable {
        name: "odm-table4",
        title: "ODM, Table 4: large data sets, linear kernel, half of the rows to train on",
        kernel: Kernel::Linear,
        repeats: 10,
        columns: &[
            column("SVM", "svm", Bias::None, "c=10;50;100"),
            column("LDA", "lda", Bias::Free, ""),
            column("ODM^L", "ldm", Bias::None, "c=10;50;100,lambda1=2^-8:2^-2~,lambda2=2^-8:2^-2~"),
            column("ODM", "odm", Bias::None, "c1=2^0:2^10~,c2=2^0:2^10~,d=0:0.5:0.1"),
        ],
        figures: include_str!("../../data/papers/odm-table4-large.csv"),
        ..ODM
    },
    PaperTable {
        name: "mcodm-table2",
        title: "mcODM, Table 2: more than two classes, linear kernel, 80 % of the rows to train on",
        kernel: Kernel::Linear,
        train: 0.8,
        repeats: 10,
        classes: None,
        reference: "mcODM",
        columns: &[
            column("mcSVM", "mcsvm", Bias::None, "c=2^0:2^20:*4"),
            wrapped("ovaSVM", Multiclass::Ova),
            wrapped("ovoSVM", Multiclass::Ovo),
            wrapped("ecocSVM", Multiclass::Ecoc),
            column("mcODM", "mcodm", Bias::None, "lambda=2^0:2^20:*4,mu=0.2:0.8:0.2,theta=0.2:0.8:0.2"),
        ],
        joined: true,
        notes: MCODM_NOTES,
        marks: Marks::OfTheReference,
        rounding: 0.0005,
        unit: 100.0,
        figures: include_str!("../../data/papers/mcodm-table2-linear.csv"),
        datasets: include_str!("../../data/papers/mcodm-datasets.csv"),
    },
    PaperTable {
        name: "msvmav-table1",
        title: "MSVMAv, Table 1: linear kernel, 80 % of the rows to train on",
        kernel: Kernel::Linear,
        columns: &[
            column("MSVMAv", "msvmav", ONE, "alpha=@,beta=@"),
            column("SVM", "svm", ONE, "c=@"),
            column("SVR", "svr", ONE, "c=@"),
            column("LSSVM", "lssvm", ONE, "c=@*m/2"),
            column("MAMC", "mamc", ONE, ""),
            column("FMM", "fmm", ONE, ""),
            column("ODM", "odm", ONE, "lambda=@,mu=0.4;0.8,theta=0.2;0.4"),
        ],
        figures: include_str!("../../data/papers/msvmav-table1-linear.csv"),
        ..MSVMAV
    },
    PaperTable {
        name: "msvmav-table2",
        title: "MSVMAv, Table 2: Gaussian kernel, 80 % of the rows to train on",
        kernel: RBF,
        columns: &[
            column("MSVMAv", "msvmav", Bias::None, "alpha=@,beta=@,gamma=@/d"),
            column("SVM", "svm", Bias::None, "c=@,gamma=@/d"),
            column("SVR", "svr", Bias::None, "c=@,gamma=@/d"),
            column("LSSVM", "lssvm", Bias::None, "c=@*m/2,gamma=@/d"),
            column("MAMC", "mamc", Bias::None, "gamma=@/d"),
            column("FMM", "fmm", Bias::None, "gamma=@/d"),
            column("ODM", "odm", Bias::None, "lambda=@,mu=0.4;0.8,theta=0.2;0.4,gamma=@/d"),
        ],
        figures: include_str!("../../data/papers/msvmav-table2-gaussian.csv"),
        ..MSVMAV
    },
];

const RBF: Kernel = Kernel::Rbf { gamma: 1.0 };

/// What the tables of the LDM paper share.
const LDM: PaperTable = PaperTable {
    name: "",
    title: "",
    kernel: Kernel::Linear,
    train: 0.5,
    repeats: 30,
    classes: Some(2),
    reference: "SVM",
    columns: &[],
    joined: false,
    notes: LDM_NOTES,
    marks: Marks::OfTheMachine,
    rounding: 0.0005,
    unit: 1.0,
    figures: "",
    datasets: include_str!("../../data/papers/ldm-datasets.csv"),
};

/// What the tables of the ODM paper share.
const ODM: PaperTable =
    PaperTable { notes: ODM_NOTES, datasets: include_str!("../../data/papers/odm-datasets.csv"), ..LDM };

/// What the tables of the MSVMAv paper share.
const MSVMAV: PaperTable = PaperTable {
    train: 0.8,
    reference: "MSVMAv",
    notes: MSVMAV_NOTES,
    marks: Marks::OfTheReference,
    rounding: 0.000_05,
    datasets: "",
    ..LDM
};

/// Files that hold a set under another name: paper, the set's name there, the files' names, the likeliest first.
const OTHER_NAMES: &[(&str, &str, &[&str])] = &[
    ("ldm", "planning-relax", &["planning"]),
    ("ldm", "breast-cancer", &["breast"]),
    ("ldm", "house", &["vote"]),
    ("odm", "house", &["vote"]),
    ("ldm", "vehicle", &["vehicle-pca16", "vehicle-sb"]),
    ("odm", "vehicle", &["vehicle-pca16", "vehicle-sb"]),
    ("ldm", "wdbc", &["wdbc-pca14"]),
    ("odm", "wdbc", &["wdbc-pca14"]),
    ("ldm", "adult-a", &["a9a"]),
    ("odm", "adult-a", &["a9a"]),
    ("ldm", "news20", &["news20.binary", "news20-b500"]),
    ("odm", "news20", &["news20.binary", "news20-b500"]),
    ("ldm", "rcv1", &["rcv1.binary", "rcv1-small"]),
    ("odm", "rcv1", &["rcv1.binary", "rcv1-small"]),
    ("ldm", "covtype", &["covtype.binary"]),
    ("mcodm", "sector", &["sector-1826"]),
    ("mcodm", "protein", &["protein-val"]),
    ("mcodm", "covtype", &["covtype-20k"]),
    ("msvmav", "advertise", &["advertise-1966"]),
    ("msvmav", "vehicle", &["vehicle-bus"]),
    ("msvmav", "pbseq", &["pbcseq"]),
    ("msvmav", "jml", &["jm1"]),
];

/// The table of this name.
pub fn table(name: &str) -> Result<&'static PaperTable> {
    TABLES.iter().find(|table| table.name == name).ok_or_else(|| Error::Parameter {
        name: "table".into(),
        value: name.into(),
        expected: format!("one of {}", TABLES.iter().map(|t| t.name).collect::<Vec<_>>().join(", ")),
    })
}

impl PaperTable {
    /// The printed figures, row by row.
    pub fn published(&self) -> Vec<Published> {
        records(self.figures).iter().map(|fields| self.figure(fields)).collect()
    }

    fn figure(&self, fields: &StringRecord) -> Published {
        let number = |at: usize| fields.get(at).and_then(|f| f.parse::<f64>().ok()).map(|v| v / self.unit);
        let mark = fields.get(4).unwrap_or_default();
        let verdict = match (mark, self.marks) {
            ("same", _) => Verdict::Tie,
            ("better", Marks::OfTheMachine) | ("worse", Marks::OfTheReference) => Verdict::Better,
            ("worse", Marks::OfTheMachine) | ("better", Marks::OfTheReference) => Verdict::Worse,
            _ if fields.get(1) == Some(self.reference) => Verdict::Reference,
            _ => Verdict::Missing,
        };
        Published {
            dataset: fields[0].into(),
            method: fields.get(1).unwrap_or_default().into(),
            mean: number(2),
            deviation: number(3).unwrap_or(0.0),
            verdict,
        }
    }

    /// The data sets of the table, in its order.
    pub fn dataset_names(&self) -> Vec<String> {
        let mut names: Vec<String> = records(self.figures).iter().map(|fields| fields[0].to_string()).collect();
        names.dedup();
        names
    }

    /// The names that a data set's file may have, the likeliest first.
    pub fn file_names(&self, dataset: &str) -> Vec<String> {
        let paper = self.name.split('-').next().unwrap_or_default();
        let others = OTHER_NAMES.iter().find(|(p, name, _)| *p == paper && *name == dataset);
        let others = others.map_or(&[][..], |(_, _, files)| files);
        others.iter().map(|name| (*name).to_string()).chain([dataset.to_string()]).collect()
    }

    /// The size of a data set as the paper states it.
    pub fn stated(&self, dataset: &str) -> Option<Stated> {
        let names = self.file_names(dataset);
        let fields = records(self.datasets).into_iter().find(|fields| names.iter().any(|name| *name == fields[0]))?;
        Some(Stated { rows: fields.get(2)?.parse().ok()?, features: fields.get(3)?.parse().ok()? })
    }

    /// The position of the reference among the columns.
    pub fn reference_column(&self) -> usize {
        self.columns.iter().position(|column| column.name == self.reference).unwrap_or(0)
    }

    /// The machines of the table for this data set.
    pub fn contestants(&self, data: &Dataset, conduct: &Conduct) -> Result<Vec<Contestant>> {
        self.columns.iter().map(|column| self.contestant(column, data, conduct)).collect()
    }

    fn contestant(&self, column: &Column, data: &Dataset, conduct: &Conduct) -> Result<Contestant> {
        let machine = machine(column.machine)?;
        let tries = match conduct.budget {
            Some(points) => Tries::Plan(Plan::Sample(points)),
            None if column.grid.is_empty() => Tries::Nothing,
            None => Tries::Plan(Plan::Grid(Grid::parse(&self.grid(column, data, conduct))?)),
        };
        let common = Common {
            options: TrainOptions {
                approx: None,
                machine,
                parameters: check_parameters(machine, &[])?,
                kernel: self.kernel,
                gamma: Gamma::Scale,
                bias: if conduct.budget.is_some() { Bias::Free } else { column.bias },
                scaling: Some(ScalingKind::MinMax),
                class_weight: ClassWeight::Equal,
                multiclass: column.multiclass,
                solver: SolverChoice::Auto,
                settings: conduct.settings,
            },
            gamma_given: false,
            tries,
            select: Select::Cv,
            folds: FOLDS,
            max_iter: conduct.search_iterations,
            rows: conduct.search_rows,
        };
        Contestant::of(machine).name(column.name).build(&common)
    }

    /// The paper's grid as text, with what depends on the data filled in.
    fn grid(&self, column: &Column, data: &Dataset, conduct: &Conduct) -> String {
        let powers = |factor: f64| {
            let values = (-5..=5).map(|k| (factor * 4f64.powi(k)).to_string());
            values.collect::<Vec<_>>().join(";")
        };
        let half = self.train * data.rows.rows() as f64 / 2.0;
        let step = format!(":*{}", conduct.step);
        let grid = column.grid.replace('~', &step).replace("@*m/2", &powers(half));
        grid.replace("@/d", &powers(1.0 / data.rows.cols().max(1) as f64)).replace('@', &powers(1.0))
    }

    /// Whether a figure of ours differs from a printed one by more than the random splits explain, and in which
    /// direction: Welch's test at 99 %, after what rounding may have taken.
    pub fn differs(&self, ours: Sample, published: &Published) -> Option<bool> {
        let theirs = Sample { mean: published.mean?, deviation: published.deviation, count: self.repeats };
        let higher = ours.mean > theirs.mean;
        let apart = (ours.mean - theirs.mean).abs() - self.rounding;
        if apart <= 0.0 {
            return None;
        }
        let nearer = Sample { mean: ours.mean + if higher { -self.rounding } else { self.rounding }, ..ours };
        (welch_test(nearer, theirs)? < DIFFERENT).then_some(higher)
    }
}

/// The records of a table after its header.
fn records(text: &'static str) -> Vec<StringRecord> {
    let table = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    table.into_records().map(|record| record.expect("the tables of this crate are UTF-8")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use widemargin::data::embedded;

    fn conduct(budget: Option<usize>) -> Conduct {
        let settings = Settings { tol: 1e-3, max_iter: None, memory: 1 << 30, ..Settings::default() };
        Conduct { budget, step: 4.0, search_iterations: None, search_rows: None, settings }
    }

    #[test]
    fn every_table_is_whole() {
        let data = embedded("sonar").unwrap();
        for table in TABLES {
            let published = table.published();
            for column in table.columns {
                let figures: Vec<_> = published.iter().filter(|p| p.method == column.name).collect();
                assert_eq!(figures.len(), table.dataset_names().len(), "{} {}", table.name, column.name);
                let fractions = figures.iter().filter_map(|p| p.mean);
                assert!(fractions.into_iter().all(|mean| (0.0..=1.0).contains(&mean)), "{}", table.name);
            }
            for budget in [None, Some(7)] {
                let machines = table.contestants(&data, &conduct(budget)).unwrap();
                assert_eq!(machines.len(), table.columns.len());
            }
            assert_eq!(table.columns[table.reference_column()].name, table.reference);
        }
        assert!(matches!(super::table("ldm-table9"), Err(Error::Parameter { .. })));
    }

    #[test]
    fn figures_are_those_of_the_papers() {
        let odm = table("odm-table2").unwrap();
        let found = odm.published().into_iter().find(|p| p.dataset == "colon-cancer" && p.method == "LDA").unwrap();
        assert_eq!((found.mean, found.deviation, found.verdict), (Some(0.640), 0.136, Verdict::Worse));
        // mcODM's marks are those of mcODM against the row's machine, and its figures are percent.
        let mcodm = table("mcodm-table2").unwrap();
        let found = mcodm.published().into_iter().find(|p| p.dataset == "iris" && p.method == "mcSVM").unwrap();
        assert!((found.mean.unwrap() - 0.847).abs() < 1e-12 && found.verdict == Verdict::Worse);
        assert_eq!(odm.stated("german"), Some(Stated { rows: 1000, features: 59 }));
        assert_eq!(table("ldm-table2").unwrap().stated("planning-relax"), Some(Stated { rows: 182, features: 12 }));
        assert_eq!(odm.dataset_names().len(), 32);
    }

    #[test]
    fn grids_are_filled_in() {
        let data = embedded("sonar").unwrap();
        let points = |table: &str, column: usize, step: f64| {
            let machines = super::table(table).unwrap();
            let conduct = Conduct { step, ..conduct(None) };
            let contestant = &machines.contestants(&data, &conduct).unwrap()[column];
            match &contestant.tuning.as_ref().unwrap().plan {
                Plan::Grid(grid) => grid.points(),
                plan => panic!("{plan:?}"),
            }
        };
        assert_eq!(points("odm-table2", 3, 2.0), 11 * 11 * 6);
        assert_eq!(points("odm-table2", 3, 4.0), 6 * 6 * 6);
        assert_eq!(points("ldm-table2", 4, 2.0), 3 * 7 * 7);
        assert_eq!(points("msvmav-table1", 0, 4.0), 121);
        assert_eq!(points("msvmav-table2", 1, 4.0), 121);
        assert_eq!(points("mcodm-table2", 4, 4.0), 11 * 16);
    }

    #[test]
    fn differences_beyond_chance_are_found() {
        let table = table("ldm-table2").unwrap();
        let published = Published {
            dataset: "x".into(),
            method: "SVM".into(),
            mean: Some(0.80),
            deviation: 0.03,
            verdict: Verdict::Reference,
        };
        let ours = |mean: f64| Sample { mean, deviation: 0.03, count: 30 };
        assert_eq!(table.differs(ours(0.805), &published), None);
        assert_eq!(table.differs(ours(0.85), &published), Some(true));
        assert_eq!(table.differs(ours(0.75), &published), Some(false));
        let exact = Published { deviation: 0.0, ..published };
        let still = Sample { mean: 0.8004, deviation: 0.0, count: 30 };
        assert_eq!(table.differs(still, &exact), None);
    }
}
