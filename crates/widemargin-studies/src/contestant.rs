//! Who enters a comparison: a machine with its kernel, its way to meet more classes, and how its parameters are found.
//!
//! As text a contestant is `MACHINE[:PART]…`, parsed here and nowhere else. A part is
//!
//! | part | means |
//! |---|---|
//! | `rbf` | a kernel |
//! | `ovo` | a way to meet more than two classes |
//! | `loo-loss` | what decides in the search |
//! | `paper`, `staged`, `fixed` | what is searched: the papers' grid, from coarse to fine, nothing |
//! | `c=10` | a parameter, or `gamma`, that is set and not searched |
//! | `c=1;10;100`, `c=2^0:2^10` | the values of a parameter: every point of the grid of all such parts is tried |

use std::collections::BTreeSet;
use widemargin::kernel::{Kernel, KernelKind};
use widemargin::machine::{Machine, SolverChoice, Value, check_parameters, machine};
use widemargin::multiclass::Multiclass;
use widemargin::select::{GAMMA, Grid, GridAxis, Plan, Search, SearchRows, Select};
use widemargin::train::{Gamma, TrainOptions};
use widemargin::{Error, Result};

/// The machine to test against if nobody names one.
const USUAL_REFERENCE: &str = "svm";

/// A machine as it enters a comparison.
#[derive(Clone)]
pub struct Contestant {
    /// What it is called in tables.
    pub name: String,
    /// How it is trained.
    pub options: TrainOptions,
    /// How its parameters are chosen on the training rows of each split; `None`: as the options say.
    pub tuning: Option<Tuning>,
}

/// How a contestant's parameters are chosen, on nothing but the training rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// What is tried.
    pub plan: Plan,
    /// By what points are compared; `None`: see [`Search::settle`].
    pub select: Option<Select>,
    /// Folds of cross-validation.
    pub folds: usize,
    /// How often the rows are dealt into folds.
    pub repeats: usize,
    /// Parameters that are set and not searched.
    pub given: Vec<(String, Value)>,
    /// Whether the kernel's `γ` is set.
    pub gamma_given: bool,
    /// Most iterations of a fit of the search; the fit of the chosen point has the limit of the options.
    pub max_iter: Option<usize>,
    /// Points are judged on at most this many rows.
    pub rows: Option<usize>,
}

impl Tuning {
    pub(crate) fn search(&self) -> Search<'_> {
        Search {
            plan: &self.plan,
            select: self.select,
            folds: self.folds,
            repeats: self.repeats,
            score: None,
            given: &self.given,
            gamma_given: self.gamma_given,
            max_iter: self.max_iter,
            rows: self.rows.map_or(SearchRows::All, SearchRows::Most),
            known: &[],
            watcher: None,
            judges: None,
        }
    }
}

impl Contestant {
    /// Begins the description of one.
    pub fn of(machine: &'static Machine) -> Builder {
        Builder {
            name: machine.name().into(),
            machine,
            kernel: None,
            multiclass: None,
            select: None,
            search: None,
            given: Vec::new(),
            gamma: None,
        }
    }

    /// All that a result depends on besides the data and the split.
    pub(crate) fn identity(&self) -> String {
        let o = &self.options;
        let settings = (o.settings.tol, o.settings.max_iter, o.settings.seed);
        format!(
            "{} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {settings:?} {:?}",
            o.machine.name(),
            o.parameters,
            o.kernel,
            o.gamma,
            o.bias,
            o.scaling,
            o.class_weight,
            o.multiclass,
            o.solver,
            self.tuning
        )
    }
}

/// What a search tries.
#[derive(Clone, Debug, PartialEq)]
pub enum Tries {
    /// Nothing: every parameter has its default, or what is set.
    Nothing,
    /// The points of a plan.
    Plan(Plan),
}

/// What all contestants share, unless one says otherwise.
#[derive(Clone)]
pub struct Common {
    /// How to train; machine, parameters and kernel are each contestant's own.
    pub options: TrainOptions,
    /// Whether the kernel's `γ` is set and not searched.
    pub gamma_given: bool,
    /// What is searched.
    pub tries: Tries,
    /// What decides in the searches.
    pub select: Select,
    /// Folds of their cross-validation.
    pub folds: usize,
    /// Most iterations of a fit of a search.
    pub max_iter: Option<usize>,
    /// Points are judged on at most this many rows.
    pub rows: Option<usize>,
}

/// The description of a contestant: what it does not say is [`Common`].
#[derive(Clone)]
pub struct Builder {
    name: String,
    machine: &'static Machine,
    kernel: Option<Kernel>,
    multiclass: Option<Multiclass>,
    select: Option<Select>,
    search: Option<Tries>,
    given: Vec<(String, Value)>,
    gamma: Option<Gamma>,
}

impl Builder {
    /// Reads `MACHINE[:PART]…`, which becomes its name.
    pub fn parse(text: &str) -> Result<Self> {
        let (name, parts) = text.split_once(':').map_or((text, None), |(name, parts)| (name, Some(parts)));
        let mut builder = Contestant::of(machine(name)?).name(text);
        let mut axes = Vec::new();
        for part in parts.map(|parts| cut(parts).map_err(|part| unknown(text, part))).transpose()?.unwrap_or_default() {
            let word = part.to_ascii_lowercase();
            if part.contains('=') {
                axes.push(part);
            } else if let Ok(kernel) = word.parse::<KernelKind>() {
                builder = builder.kernel(kernel.with(1.0, KernelKind::DEGREE, KernelKind::COEF0));
            } else if let Ok(multiclass) = word.parse::<Multiclass>() {
                builder = builder.multiclass(multiclass);
            } else if let Ok(select) = word.parse::<Select>() {
                builder = builder.select(select);
            } else if let Some(tries) = tries_named(&word) {
                builder = builder.tries(tries);
            } else {
                return Err(unknown(text, &part));
            }
        }
        builder.with_axes(&axes)
    }

    /// Single values are set, the others are a grid.
    fn with_axes(mut self, axes: &[String]) -> Result<Self> {
        let mut grid = Vec::new();
        for text in axes {
            match Grid::parse(text)?.axes.as_slice() {
                [GridAxis { name, values }] => match values.as_slice() {
                    [value] if !(name == GAMMA && value == &Value::Word("widths".into())) => {
                        self = self.set(name, value.clone());
                    }
                    _ => grid.push(text.as_str()),
                },
                _ => grid.push(text.as_str()),
            }
        }
        if grid.is_empty() { Ok(self) } else { Ok(self.tries(Tries::Plan(Plan::Grid(Grid::parse(&grid.join(","))?)))) }
    }

    /// What it is called in tables.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Its kernel.
    pub fn kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = Some(kernel);
        self
    }

    /// How it meets more than two classes.
    pub fn multiclass(mut self, multiclass: Multiclass) -> Self {
        self.multiclass = Some(multiclass);
        self
    }

    /// What decides in its search.
    pub fn select(mut self, select: Select) -> Self {
        self.select = Some(select);
        self
    }

    /// What its search tries.
    pub fn tries(mut self, tries: Tries) -> Self {
        self.search = Some(tries);
        self
    }

    /// Sets a parameter, or `gamma`, which is then not searched. Its value is checked by [`build`](Self::build).
    pub fn set(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.given.retain(|(known, _)| known != name);
        self.given.push((name.into(), value.into()));
        self
    }

    /// The contestant.
    pub fn build(mut self, common: &Common) -> Result<Contestant> {
        self.take_gamma()?;
        let mut options = common.options.clone();
        options.machine = self.machine;
        options.parameters = checked(self.machine, &self.given)?;
        options.kernel = self.kernel.unwrap_or(options.kernel);
        options.multiclass = self.multiclass.or(options.multiclass);
        options.gamma = self.gamma.unwrap_or(options.gamma);
        // A solver that another machine knows is not for this one.
        if !self.machine.uses().solvers.contains(&options.solver) {
            options.solver = SolverChoice::Auto;
        }
        let tuning = match self.search.unwrap_or_else(|| common.tries.clone()) {
            Tries::Nothing => None,
            Tries::Plan(plan) => Some(Tuning {
                plan,
                select: Some(self.select.unwrap_or(common.select)),
                folds: common.folds,
                repeats: 1,
                given: self.given,
                gamma_given: common.gamma_given || self.gamma.is_some(),
                max_iter: common.max_iter,
                rows: common.rows,
            }),
        };
        Ok(Contestant { name: self.name, options, tuning })
    }

    /// `γ` is the kernel's, not the machine's.
    fn take_gamma(&mut self) -> Result<()> {
        let Some(place) = self.given.iter().position(|(name, _)| name == GAMMA) else { return Ok(()) };
        let (_, value) = self.given.remove(place);
        self.gamma = Some(match value {
            Value::Number(number) if number > 0.0 => Gamma::Value(number),
            value => value.to_string().parse()?,
        });
        Ok(())
    }
}

/// Checks the parameters of a machine; one it does not have is named together with those it has.
pub(crate) fn checked(machine: &Machine, given: &[(String, Value)]) -> Result<widemargin::machine::Parameters> {
    let has = |name: &str| machine.parameters().iter().any(|p| p.name == name);
    if let Some((name, _)) = given.iter().find(|(name, _)| !has(name)) {
        let own: Vec<&str> = machine.parameters().iter().map(|p| p.name).collect();
        let machine = machine.name();
        return Err(Error::Usage(format!("{name} is not a parameter of {machine}; {machine} has {}", own.join(", "))));
    }
    check_parameters(machine, given)
}

/// What changes every contestant, or every one of a machine, after they are named.
pub struct Amendment {
    text: String,
    machine: Option<&'static Machine>,
    change: Change,
}

enum Change {
    Tries(Tries),
    Set(String, Value),
}

impl Amendment {
    /// Reads what is tried: `paper` or `staged` for all, `MACHINE:GRID` for one, where the grid is a whole one: what it does not
    /// name is not searched.
    pub fn grid(text: &str) -> Result<Self> {
        let tries = |words: &str| match tries_named(words) {
            Some(tries) => Ok(tries),
            None => Grid::parse(words).map(|grid| Tries::Plan(Plan::Grid(grid))),
        };
        let (machine, tries) = match text.split_once(':') {
            Some((name, grid)) if !name.contains('=') => (Some(machine(name)?), tries(grid)?),
            _ => {
                let expected = || format!("{text}: expected paper, staged or MACHINE:GRID, such as svm:c=1;10");
                (None, tries_named(text).ok_or_else(|| Error::Usage(expected()))?)
            }
        };
        Ok(Self { text: text.into(), machine, change: Change::Tries(tries) })
    }

    /// Reads `MACHINE.PARAMETER=VALUE`; `None` if it is of another form.
    pub fn set(text: &str) -> Option<Result<Self>> {
        let (name, value) = text.split_once('=')?;
        let (of, parameter) = name.split_once('.')?;
        let change = Change::Set(parameter.trim().into(), value.trim().into());
        Some(machine(of.trim()).map(|machine| Self { text: text.into(), machine: Some(machine), change }))
    }

    fn is_for(&self, builder: &Builder) -> bool {
        self.machine.is_none_or(|machine| machine.name() == builder.machine.name())
    }
}

/// Who competes: the contestants as they are typed, then amended, each with every kernel unless it names its own. Of several
/// amendments the last holds, and one of a machine before one of all; what a contestant's own text says holds before both.
/// `shape` gives a kernel the constants that are common to all.
pub fn contestants(
    texts: &[String],
    amendments: &[Amendment],
    kernels: &[Kernel],
    common: &Common,
    shape: &dyn Fn(Kernel) -> Result<Kernel>,
) -> Result<Vec<Contestant>> {
    let mut builders: Vec<Builder> = texts.iter().map(|text| Builder::parse(text)).collect::<Result<_>>()?;
    for amendment in amendments {
        if !builders.iter().any(|builder| amendment.is_for(builder)) {
            let name = amendment.machine.map_or("", Machine::name);
            return Err(Error::Usage(format!("{}: {name} is not among the machines", amendment.text)));
        }
    }
    builders.iter_mut().for_each(|builder| amend(builder, amendments));
    let mut found = Vec::new();
    for (place, &kernel) in kernels.iter().enumerate() {
        for builder in &builders {
            let builder = match builder.kernel {
                // A machine with a kernel of its own enters once.
                Some(_) if place > 0 => continue,
                Some(own) => builder.clone().kernel(shape(own)?),
                None if kernels.len() == 1 => builder.clone().kernel(shape(kernel)?),
                None => {
                    let name = format!("{}:{}", builder.name, kernel.name());
                    builder.clone().name(name).kernel(shape(kernel)?)
                }
            };
            found.push(builder.build(common)?);
        }
    }
    Ok(found)
}

fn amend(builder: &mut Builder, amendments: &[Amendment]) {
    let own: BTreeSet<String> = builder.given.iter().map(|(name, _)| name.clone()).collect();
    let said = builder.search.is_some();
    let (for_all, for_one): (Vec<&Amendment>, Vec<&Amendment>) =
        amendments.iter().filter(|amendment| amendment.is_for(builder)).partition(|a| a.machine.is_none());
    for amendment in for_all.into_iter().chain(for_one) {
        match &amendment.change {
            Change::Tries(tries) if !said => builder.search = Some(tries.clone()),
            Change::Set(name, value) if !own.contains(name) => *builder = builder.clone().set(name, value.clone()),
            _ => {}
        }
    }
}

/// The position of the contestant to test the others against: the one of this name, the first of this machine, or, if nobody is
/// named, the first SVM, else the last.
pub fn reference(contestants: &[Contestant], name: Option<&str>) -> Result<usize> {
    let of_machine = |name: &str| contestants.iter().position(|c| c.options.machine.name() == name);
    let Some(name) = name else { return Ok(of_machine(USUAL_REFERENCE).unwrap_or(contestants.len() - 1)) };
    let found = contestants.iter().position(|c| c.name == name);
    let found = found.or_else(|| machine(name).ok().and_then(|machine| of_machine(machine.name())));
    found.ok_or_else(|| Error::Usage(format!("reference {name}: it is not among the machines")))
}

/// Cuts `PART:PART…`; commas part as well, as in grids. `FROM:TO:STEP` after a name's `=` stays together. `Err` is a part that is
/// none.
fn cut(text: &str) -> std::result::Result<Vec<String>, &str> {
    let mut parts: Vec<String> = Vec::new();
    for piece in text.split(',') {
        let mut in_axis = false;
        for word in piece.split(':') {
            let goes_on = word.starts_with(|c: char| c.is_ascii_digit() || "+-.*".contains(c)) && !word.contains('=');
            match parts.last_mut() {
                Some(axis) if in_axis && goes_on => *axis = format!("{axis}:{word}"),
                _ if word.is_empty() => return Err(word),
                _ => {
                    in_axis = word.contains('=');
                    parts.push(word.into());
                }
            }
        }
    }
    Ok(parts)
}

fn unknown(text: &str, part: &str) -> Error {
    Error::Usage(format!(
        "{text}: after the machine may stand a kernel (rbf), a way to meet more classes (ovo), what decides in the search \
         (loo-loss), what is searched (paper, staged, fixed) or a parameter (c=1, c=1;10), not {part}"
    ))
}

fn tries_named(word: &str) -> Option<Tries> {
    match word {
        "paper" => Some(Tries::Plan(Plan::Paper)),
        "staged" => Some(Tries::Plan(Plan::Staged)),
        "fixed" => Some(Tries::Nothing),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use widemargin::machine::Bias;
    use widemargin::solver::Settings;
    use widemargin::train::ClassWeight;

    fn common() -> Common {
        let svm = machine("svm").unwrap();
        Common {
            options: TrainOptions {
                approx: None,
                machine: svm,
                parameters: check_parameters(svm, &[]).unwrap(),
                kernel: Kernel::Linear,
                gamma: Gamma::Scale,
                bias: Bias::Free,
                scaling: None,
                class_weight: ClassWeight::Equal,
                multiclass: None,
                solver: SolverChoice::Newton,
                settings: Settings::default(),
            },
            gamma_given: false,
            tries: Tries::Plan(Plan::Sample(20)),
            select: Select::Cv,
            folds: 5,
            max_iter: None,
            rows: None,
        }
    }

    fn built(text: &str) -> Contestant {
        Builder::parse(text).and_then(|builder| builder.build(&common())).unwrap()
    }

    #[test]
    fn a_machine_alone_is_as_all_are() {
        let plain = built("odm");
        assert_eq!((plain.name.as_str(), plain.options.machine.name()), ("odm", "odm"));
        assert_eq!(plain.tuning.unwrap().plan, Plan::Sample(20));
        assert_eq!((plain.options.kernel, plain.options.solver), (Kernel::Linear, SolverChoice::Newton));
        assert_eq!(built("lda").options.solver, SolverChoice::Auto);
    }

    #[test]
    fn parts_in_any_order() {
        let one = built("svm:loo:ovo:RBF:gamma=0.5");
        assert_eq!((one.options.kernel, one.options.multiclass), (Kernel::Rbf { gamma: 1.0 }, Some(Multiclass::Ovo)));
        assert_eq!(one.options.gamma, Gamma::Value(0.5));
        let tuning = one.tuning.unwrap();
        assert_eq!((tuning.select, tuning.gamma_given, tuning.given.len()), (Some(Select::Loo), true, 0));
        assert_eq!(built("svm:fixed").tuning, None);
        assert_eq!(built("svm:staged").tuning.unwrap().plan, Plan::Staged);
    }

    #[test]
    fn single_values_are_set_and_others_are_a_grid() {
        let one = built("odm:c1=2^0:2^4:c2=3:d=0:0.4:0.2:rbf:gamma=widths");
        assert_eq!((one.options.parameters.number("c2"), one.options.kernel.name()), (3.0, "rbf"));
        let tuning = one.tuning.unwrap();
        assert_eq!(tuning.given, [("c2".to_string(), Value::Number(3.0))]);
        let Plan::Grid(grid) = tuning.plan else { panic!("{:?}", tuning.plan) };
        let sizes: Vec<(&str, usize)> = grid.axes.iter().map(|a| (a.name.as_str(), a.values.len())).collect();
        assert_eq!(sizes, [("c1", 5), ("d", 3), ("gamma", 1)]);
        assert_eq!(cut("c=1:4:*2,gamma=1").unwrap(), ["c=1:4:*2", "gamma=1"]);
    }

    #[test]
    fn what_is_none_is_named() {
        for (text, part) in [
            ("what", "what"),
            ("odm:what", "odm:what"),
            ("odm:", "kernel"),
            ("odm:c1=1,10", "not 10"),
            ("odm:nosuch=1", "nosuch"),
            ("odm:c1=-3", "a number > 0"),
            ("odm:gamma=0", "gamma"),
        ] {
            let error = Builder::parse(text).and_then(|builder| builder.build(&common())).map(|c| c.name).unwrap_err();
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn amendments_and_kernels() {
        let texts: Vec<String> = ["odm", "svm:c=7", "svm:rbf:paper"].map(str::to_string).into();
        let amendments = [
            Amendment::set("svm.c=2").unwrap().unwrap(),
            Amendment::grid("odm:c1=1;2").unwrap(),
            Amendment::grid("staged").unwrap(),
        ];
        let kernels = [Kernel::Linear, Kernel::Laplacian { gamma: 1.0 }];
        let found = contestants(&texts, &amendments, &kernels, &common(), &Ok).unwrap();
        let names: Vec<&str> = found.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["odm:linear", "svm:c=7:linear", "svm:rbf:paper", "odm:laplacian", "svm:c=7:laplacian"]);
        let c = |place: usize| found[place].options.parameters.number("c");
        assert_eq!((c(1), c(2)), (7.0, 2.0));
        let plan = |place: usize| found[place].tuning.as_ref().unwrap().plan.clone();
        assert!(matches!(plan(0), Plan::Grid(grid) if grid.points() == 2));
        assert_eq!((plan(1), plan(2)), (Plan::Staged, Plan::Paper));
        assert_eq!(reference(&found, None).unwrap(), 1);
        assert_eq!(reference(&found, Some("odm:laplacian")).unwrap(), 3);
        assert!(reference(&found, Some("lda")).is_err());
        let stranger = [Amendment::set("lda.ridge=1").unwrap().unwrap()];
        assert!(contestants(&texts, &stranger, &kernels, &common(), &Ok).is_err());
        assert!(Amendment::set("odm").is_none() && Amendment::grid("c=1").is_err());
    }
}
