//! A set of rows under a kernel with what is dear to make of it, for one solve or for many. It alone picks the solver.

mod left_out;
mod many;
mod point;
mod supporting;

pub use left_out::LeftOutMargins;
pub use point::{Ending, Factor, Solved, Start};

use super::certify::{Certified, KernelProduct, certify};
use super::dcd::{self, Patience, Weights};
use super::decomposition;
use super::newton::{self, CoefficientSpace, KernelMatrix, NORMAL_EQUATIONS, Pieces, Space, WeightSpace};
use super::sgd::{self, SgdRows};
use super::{Settings, SolverChoice};
use crate::control::Control;
use crate::data::{Matrix, Rows};
use crate::design::Design;
use crate::kernel::{
    Gram, GramPrecision, Kernel, KernelKind, KernelProducts, KernelRows, RowStore, Stored, TilePrecision, Tiles,
};
use crate::linalg;
use crate::problem::{MarginProblem, ScoreFunctions, StopReason};
use crate::random::Random;
use crate::{Error, Remedy, Result, with_rows};
use std::sync::{Arc, OnceLock};

/// Up to this many rows a linear problem with more features than rows is solved through its `m × m` inner products.
const SMALL: usize = 3000;
/// Up to this many the inner products of sparse rows cost less than some fifty passes of coordinate descent.
const FEW: usize = 100;
/// Passes of coordinate descent before Newton's method takes over.
const PASSES: usize = 1000;
/// Blocks of dual descent before Newton's method takes over where the kernel matrix is there, for every so many rows: a
/// Newton step then costs no more than a few blocks.
const BLOCKS: usize = 8;
const BLOCK_ROWS: usize = 1000;
/// How much better a problem is solved again whose certificate was worse than its solver believed.
const TIGHTER: f64 = 0.1;
/// Up to this many rows double precision costs nothing.
const FEW_IN_DOUBLE: usize = 500;
/// Up to so many rows Newton's method factors its systems.
const WHOLE: usize = 2000;
/// The error of a kernel value that is kept as a multiple of `2⁻¹⁶`.
const FIXED_ERROR: f64 = 4.4e-6;
/// The part of the tolerance that these errors may take. (Of 60,000 × 8, ODM, C1 = 10 m, they were foretold to take 0.36 and took 0.26;
/// of a9a 0.19 and 0.06. With 32 bits a value the fits took twice as long.)
const FIXED_PART: f64 = 0.4;
/// A larger kernel value could overflow in single precision once it is multiplied.
const LARGEST_SINGLE: f64 = 1e15;
/// A certificate of up to this part of the rows computes their kernel values. (Memory that a virtual machine has to ask for takes 14 ns for
/// each value in double precision, the value itself 4.)
const FEW_SUPPORT: usize = 8;
/// Newton's method over many rows of few features starts at the solution of every so manieth.
const SAMPLE: usize = 32;

/// Rows under a kernel: kernel matrix, norms and factors are made once, when they are first needed.
pub struct Workspace<'a> {
    rows: &'a Matrix<'a>,
    kernel: Kernel,
    settings: Settings,
    /// The rows under a kernel that is not linear, ready for kernel values whose rounding does not show in a relative gap of the
    /// tolerance; none where they are cut out of another's.
    prepared: Option<KernelRows<'a>>,
    single: OnceLock<Gram>,
    double: OnceLock<Gram>,
    /// What is multiplied with, for each [`TilePrecision`].
    tiles: [OnceLock<Tiles>; 3],
    /// Who multiplies with the matrix, where that is done elsewhere.
    products: Option<Arc<dyn KernelProducts>>,
    /// Whether many problems are solved here, so that the whole matrix pays. Not whether it is there already: that may depend on
    /// which thread was first.
    shared: bool,
    /// The workspace of which this one has some of the rows, and which.
    whole: Option<(&'a dyn Matrices, &'a [usize])>,
}

/// Kernel matrices of a set of rows, each computed at most once.
trait Matrices: Sync {
    /// Whether the whole matrix fits the memory.
    fn fits(&self, precision: GramPrecision) -> bool;
    /// The whole matrix.
    fn gram(&self, precision: GramPrecision, control: Control<'_>) -> Result<&Gram>;
    /// A matrix that is there already, the more precise one first.
    fn present(&self) -> Option<&Gram>;
}

impl Matrices for Workspace<'_> {
    fn fits(&self, precision: GramPrecision) -> bool {
        Gram::bytes(self.rows.rows(), precision) <= self.settings.memory
    }

    fn gram(&self, precision: GramPrecision, control: Control<'_>) -> Result<&Gram> {
        let place = match precision {
            GramPrecision::Single => &self.single,
            GramPrecision::Double => &self.double,
        };
        if let Some(gram) = place.get() {
            return Ok(gram);
        }
        let gram = match self.whole {
            Some((whole, chosen)) if whole.fits(precision) => whole.gram(precision, control)?.part(chosen),
            _ => self.with_kernel_rows(|rows| Gram::new(rows, precision, control))?,
        };
        Ok(place.get_or_init(|| gram))
    }

    fn present(&self) -> Option<&Gram> {
        self.double.get().or(self.single.get())
    }
}

/// So many of the rows, in their order.
fn random_rows(m: usize, some: usize, seed: u64) -> Vec<usize> {
    let mut chosen: Vec<usize> = (0..m).collect();
    Random::new(seed, 0x7069_6563).shuffle(&mut chosen);
    chosen.truncate(some);
    chosen.sort_unstable();
    chosen
}

/// One solve: the problem, and how to go about it.
#[derive(Clone, Copy)]
struct Task<'t> {
    problem: &'t MarginProblem<'t>,
    choice: SolverChoice,
    settings: &'t Settings,
    control: Control<'t>,
    /// Whether tiles may be kept in fixed point, where their rounding leaves enough of the tolerance.
    fixed: bool,
}

impl<'a> Workspace<'a> {
    /// The rows under a kernel. Of `settings`, the memory is what matrices may take, and the tolerance says in which precision
    /// kernel values are good enough.
    pub fn new(rows: &'a Matrix<'a>, kernel: Kernel, settings: Settings) -> Self {
        let prepared = (kernel != Kernel::Linear).then(|| prepare(kernel, rows, &settings));
        Self { prepared, ..Self::bare(rows, kernel, settings) }
    }

    fn bare(rows: &'a Matrix<'a>, kernel: Kernel, settings: Settings) -> Self {
        Self {
            rows,
            kernel,
            settings,
            prepared: None,
            single: OnceLock::new(),
            double: OnceLock::new(),
            tiles: Default::default(),
            products: None,
            shared: false,
            whole: None,
        }
    }

    /// What is made of the rows under their kernel.
    fn with_kernel_rows<R>(&self, then: impl FnOnce(&KernelRows<'_>) -> R) -> R {
        match &self.prepared {
            Some(rows) => then(rows),
            None => then(&prepare(self.kernel, self.rows, &self.settings)),
        }
    }

    /// The matrix as tiles, as many as fit beside those that are there already: the others are computed anew in every product, with
    /// the same values.
    fn tiles(&self, rows: &KernelRows<'_>, precision: TilePrecision, control: Control<'_>) -> Result<&Tiles> {
        let place = &self.tiles[precision as usize];
        if let Some(tiles) = place.get() {
            return Ok(tiles);
        }
        if let Some(products) = &self.products {
            let tiles = Tiles::elsewhere(rows, precision, self.settings.memory, products.clone());
            return Ok(place.get_or_init(|| tiles));
        }
        let taken: u64 = self.tiles.iter().flat_map(|tiles| tiles.get()).map(Tiles::bytes).sum();
        let tiles = Tiles::new(rows, precision, self.settings.memory.saturating_sub(taken), control)?;
        Ok(place.get_or_init(|| tiles))
    }

    /// The same with the tiles of another workspace, whose rows at these places are the first of these.
    fn going_on_with(self, before: [OnceLock<Tiles>; 3], kept: &[usize], control: Control<'_>) -> Result<Self> {
        let mut tiles: [OnceLock<Tiles>; 3] = Default::default();
        if let Some(rows) = &self.prepared {
            for (place, before) in tiles.iter_mut().zip(before) {
                if let Some(before) = before.into_inner() {
                    *place = before.of_rows(rows, kept, control)?.into();
                }
            }
        }
        Ok(Self { tiles, ..self })
    }

    /// The same where others multiply with the matrix, of all but few rows: for smooth losses, which need nothing else of it.
    pub fn multiplied_by(self, products: Arc<dyn KernelProducts>) -> Self {
        Self { products: Some(products), ..self }
    }

    /// The same for many problems: kernel values are computed once, if the matrix fits.
    pub fn shared(self) -> Self {
        Self { shared: true, ..self }
    }

    /// Some rows of another workspace, `rows` being a copy of them: kernel values are cut out of its matrix, not computed again.
    pub fn part(whole: &'a Workspace<'_>, chosen: &'a [usize], rows: &'a Matrix<'a>, settings: Settings) -> Self {
        let cut = rows.rows() <= WHOLE && whole.fits(GramPrecision::Double);
        let prepared = (whole.kernel != Kernel::Linear && !cut).then(|| prepare(whole.kernel, rows, &settings));
        Self { whole: Some((whole, chosen)), shared: true, prepared, ..Self::bare(rows, whole.kernel, settings) }
    }

    /// The rows.
    pub fn rows(&self) -> &'a Matrix<'a> {
        self.rows
    }

    /// The kernel.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The whole kernel matrix `G + offset`, row-major, if `matrices` of its size fit the memory: for machines that do with it as
    /// they like.
    pub fn matrix(&self, offset: f64, matrices: u64, what: &str, control: Control<'_>) -> Result<Vec<f64>> {
        let m = self.rows.rows() as u64;
        let needed = m.saturating_mul(m).saturating_mul(8 * matrices);
        if needed > self.settings.memory {
            return Err(Error::Memory {
                what: format!("{what} with a kernel on {m} rows"),
                needed,
                budget: self.settings.memory,
                advice: [
                    Remedy::Raise("memory"),
                    Remedy::Use("kernel", KernelKind::Linear.to_string()),
                    Remedy::Do("train on fewer rows"),
                ]
                .into(),
            });
        }
        KernelRows::new(self.kernel, self.rows, offset).matrix(control)
    }

    /// What multiples of `2⁻¹⁶` in place of kernel values between 0 and 1 add to the relative gap of losses of this curvature `h`, its
    /// weights included, over so many rows: they are off by errors that are independent, which move scores by that times `‖c‖`, and
    /// the gap by `h` times half the square of it, while rows add `c²/2h` to the objective. None where values are not kept so.
    fn fixed_gap(&self, curvature: Option<f64>, rows: usize) -> Option<f64> {
        let unit = matches!(self.kernel, Kernel::Rbf { .. } | Kernel::Laplacian { .. });
        // Nothing is kept of products that are made elsewhere.
        let gap = |h: f64| rows as f64 * (h * FIXED_ERROR).powi(2);
        curvature.filter(|_| unit && self.products.is_none()).map(gap)
    }

    /// The same for a solve over tiles of so many rows, if they are kept so.
    fn fixed(&self, task: &Task<'_>, precision: GramPrecision, rows: usize) -> Option<f64> {
        let Task { problem, settings, .. } = *task;
        let allowed = task.fixed && precision == GramPrecision::Single && problem.loss.is_smooth();
        let curvature = problem.loss.curvature(f64::MIN).max(problem.loss.curvature(f64::MAX));
        let h = curvature * problem.weights.iter().fold(0.0, |most: f64, s| most.max(*s));
        self.fixed_gap(allowed.then_some(h), rows).filter(|gap| *gap <= FIXED_PART * settings.tol)
    }

    /// `Σ_j c_j k(x_i, x_j)` for rows of the workspace that this one is a part of, from its matrix; `None` where that is not at
    /// hand.
    pub fn cross_scores(&self, others: &[usize], c: &[f64]) -> Option<Vec<f64>> {
        let (whole, chosen) = self.whole?;
        Some(whole.present()?.cross(others, chosen, c))
    }

    /// Minimises the problem and certifies what was found. Which solver ran, and whether another had to help, is in
    /// [`Solved::solver`].
    pub fn fit(
        &self,
        problem: &MarginProblem<'_>,
        choice: SolverChoice,
        start: &Start,
        settings: &Settings,
        control: Control<'_>,
    ) -> Result<Solved> {
        let task = Task { problem, choice, settings, control, fixed: true };
        self.check(&task)?;
        if problem.is_unbounded() {
            let zero = Ending::zero(self.rows, self.kernel, StopReason::Unbounded, "no minimum");
            return self.certified(&task, zero);
        }
        if self.is_indefinite() {
            return self.indefinite(&task);
        }
        if self.by_products(&task) {
            return self.certified_products(&task, start);
        }
        let ending = self.by_features(&task, start)?;
        self.certified(&task, ending)
    }

    /// Minimises the problem from a start, in this precision of kernel values, without a certificate: for searches, which solve
    /// many problems and keep none.
    pub fn solve(
        &self,
        problem: &MarginProblem<'_>,
        precision: GramPrecision,
        start: &Start,
        settings: &Settings,
        control: Control<'_>,
    ) -> Result<Ending> {
        let task = Task { problem, choice: SolverChoice::Auto, settings, control, fixed: true };
        if !self.by_products(&task) {
            return self.by_features(&task, start);
        }
        let ending = self.over_kernel(&task, precision, start, settings.tol)?;
        Ok(if self.kernel == Kernel::Linear { self.to_weights(ending) } else { ending })
    }

    fn is_indefinite(&self) -> bool {
        matches!(self.kernel, Kernel::Sigmoid { .. })
    }

    /// Refuses what was asked for and cannot be.
    fn check(&self, task: &Task<'_>) -> Result<()> {
        if self.kernel == Kernel::Linear {
            return Ok(());
        }
        task.choice.check(self.kernel)?;
        let m = self.rows.rows();
        let needed = Gram::bytes(m, GramPrecision::for_tolerance(task.settings.tol));
        let kinks = !task.problem.loss.is_smooth();
        if task.choice == SolverChoice::Newton && kinks && needed > task.settings.memory {
            return Err(Error::Memory {
                what: format!("Newton's method over the {m} × {m} kernel matrix"),
                needed,
                budget: task.settings.memory,
                advice: [Remedy::Use("solver", SolverChoice::Dcd.to_string()), Remedy::Raise("memory")].into(),
            });
        }
        Ok(())
    }

    /// Whether a problem is solved over inner products of rows: over a kernel always; of a linear problem with fewer rows than
    /// weights they are the smaller matrix, and the better one where features are large.
    fn by_products(&self, task: &Task<'_>) -> bool {
        if self.kernel != Kernel::Linear {
            return true;
        }
        let (m, n) = (self.rows.rows(), Design::new(self.rows, task.problem.bias).width());
        let small = n > m && m <= SMALL;
        match task.choice {
            SolverChoice::Newton => small,
            SolverChoice::Auto => small && !(self.by_descent(task.problem) && !self.rows.is_dense() && m > FEW),
            SolverChoice::Dcd | SolverChoice::Asgd | SolverChoice::Svrg => false,
        }
    }

    /// Whether coordinate descent is the quicker way through the features: a pass costs what a product of conjugate gradients
    /// does, and a handful suffice where rows are short.
    fn by_descent(&self, problem: &MarginProblem<'_>) -> bool {
        let n = Design::new(self.rows, problem.bias).width();
        n > NORMAL_EQUATIONS && !(problem.loss.is_smooth() && self.rows.is_dense())
    }

    fn by_features(&self, task: &Task<'_>, start: &Start) -> Result<Ending> {
        let Task { problem, choice, settings, control, .. } = *task;
        let design = Design::new(self.rows, problem.bias);
        match choice {
            SolverChoice::Asgd => with_rows!(self.rows, x => {
                sgd::asgd(problem, SgdRows { x, design: &design, y: problem.y }, settings, control)
            }),
            SolverChoice::Svrg => with_rows!(self.rows, x => {
                sgd::svrg(problem, SgdRows { x, design: &design, y: problem.y }, settings, control)
            }),
            SolverChoice::Dcd => with_rows!(self.rows, x => self.linear_dcd(task, x, &design, true)),
            SolverChoice::Auto if self.by_descent(problem) => {
                with_rows!(self.rows, x => self.linear_dcd(task, x, &design, false))
            }
            SolverChoice::Newton | SolverChoice::Auto => {
                let space = self.first_space(task, &design, start)?;
                linear_newton(task, space, start.multipliers(problem.y.len()))
            }
        }
    }

    /// Where Newton's method over weights starts: of many rows of few features at the solution of every [`SAMPLE`]th, which is
    /// nearly that of all and spares a step or two over all.
    fn first_space<'s>(&self, task: &Task<'s>, design: &'s Design<'s>, start: &Start) -> Result<WeightSpace<'s>> {
        let Task { problem, settings, control, .. } = *task;
        let (m, n) = (self.rows.rows(), design.width());
        let quadratic = problem.loss.is_smooth() && problem.variance == 0.0;
        let sampled = quadratic && n <= NORMAL_EQUATIONS && m >= 50_000.max(64 * SAMPLE * n);
        if !sampled || !start.w.is_empty() {
            return Ok(WeightSpace::new(design, problem.y, start.vector(n)));
        }
        let chosen: Vec<usize> = (0..m).step_by(SAMPLE).collect();
        let rows = self.rows.select(&chosen);
        let (y, mut weights) = problem.of_rows(&chosen);
        weights.iter_mut().for_each(|s| *s *= SAMPLE as f64);
        let part = MarginProblem { y: &y, weights: &weights, ..*problem };
        let part_design = Design::new(&rows, problem.bias);
        let mut space = WeightSpace::new(&part_design, &y, vec![0.0; n]);
        let rough = Settings { max_iter: Some(3), ..*settings };
        newton::newton(&mut space, &part, vec![0.0; y.len()], &rough, Control { observer: None, ..control })?;
        Ok(WeightSpace::surveyed(design, problem.y, space.weights().to_vec(), |i, margin| {
            let (s, (_, slope, curvature)) = (problem.weights[i], problem.loss.jet(margin));
            (-s * slope, s * curvature)
        }))
    }

    /// Coordinate descent, then Newton's method if the passes run out or (unless `patient`) crawl.
    fn linear_dcd<X: Rows>(&self, task: &Task<'_>, x: &X, design: &Design<'_>, patient: bool) -> Result<Ending> {
        let Task { problem, settings, control, .. } = *task;
        let mut weights = Weights::new(x, design, problem.y);
        let passes = settings.max_iter.unwrap_or(PASSES);
        let patience = Patience { passes, leave_when_crawling: !patient, indefinite: false };
        let found = dcd::descend(&mut weights, problem, settings, patience, control)?;
        let w = weights.w;
        let solver = format!("dcd ({} passes)", found.passes);
        if found.stop != StopReason::Iterations || settings.max_iter.is_some() {
            let v = Some(found.certified.v.clone());
            let ending = Ending::of_weights(design, w, v, found.stop, found.passes, "dcd".into());
            return Ok(Ending {
                margins: Some(found.certified.margins.clone()),
                certified: Some(found.certified),
                ..ending
            });
        }
        if design.width() > x.rows() && x.rows() <= SMALL {
            let newton = Task { choice: SolverChoice::Newton, ..*task };
            let ending = self.over_kernel(&newton, GramPrecision::Double, &Start::default(), settings.tol)?;
            return Ok(self.to_weights(ending).after(&solver));
        }
        let Certified { margins, v, .. } = found.certified;
        Ok(linear_newton(task, WeightSpace::at(design, problem.y, w, margins), v)?.after(&solver))
    }

    /// Solves over inner products of rows and certifies what is written: in single precision where that mostly suffices, and on
    /// from there in double precision where the certificate says that it did not.
    fn certified_products(&self, task: &Task<'_>, start: &Start) -> Result<Solved> {
        let settings = task.settings;
        let single = self.rows.rows() > FEW_IN_DOUBLE
            && GramPrecision::for_tolerance(settings.tol) == GramPrecision::Single
            && self.largest_diagonal() < LARGEST_SINGLE;
        // The second one is for tiles in fixed point whose rounding was not what was foretold, the last one for solvers that believed
        // in a gap which the certificate does not find.
        let attempts = [
            (GramPrecision::Single, true, 1.0),
            (GramPrecision::Single, false, 1.0),
            (GramPrecision::Double, false, 1.0),
            (GramPrecision::Double, false, TIGHTER),
        ];
        let (mut start, mut best): (Start, Option<Solved>) = (start.by_coefficients(self.rows.rows()), None);
        for &(precision, fixed, part) in &attempts[if single { 0 } else { 2 }..] {
            let support = best.as_ref().map_or(0, Solved::support);
            if precision == GramPrecision::Single && !fixed && self.fixed(task, precision, support).is_none() {
                continue;
            }
            let tol = part * settings.tol;
            let ending = match self.over_kernel(&Task { fixed, ..*task }, precision, &start, tol) {
                // Rounding may leave a matrix that is not positive semidefinite.
                Err(Error::Numeric { .. }) => continue,
                ending => ending?,
            };
            // From nearby, Newton's method is quicker.
            start = Start { hard: true, ..ending.start(task.problem) };
            let believed = ending.stop == StopReason::Gap;
            let written = |ending| if self.kernel == Kernel::Linear { self.to_weights(ending) } else { ending };
            let by_coefficients = ending.by_coefficients(task.problem);
            let mut solved = self.certified(task, written(ending))?;
            if let Some(other) = by_coefficients.filter(|_| solved.gap() > settings.tol) {
                let other = self.certified(task, written(other))?;
                solved = if other.gap() < solved.gap() { other } else { solved };
            }
            if let Some(before) = &best {
                solved.solver = format!("{}, then in double precision {}", before.solver, solved.solver);
            }
            let limited = solved.stop == StopReason::Iterations && settings.max_iter.is_some();
            let done = solved.stop == StopReason::Gap || limited || precision == GramPrecision::Double && !believed;
            if best.as_ref().is_none_or(|best| solved.gap() <= best.gap()) {
                best = Some(solved);
            }
            if done {
                break;
            }
        }
        let hidden = "rounding hides the kernel matrix";
        best.map_or_else(
            || self.certified(task, Ending::zero(self.rows, self.kernel, StopReason::Precision, hidden)),
            Ok,
        )
    }

    fn largest_diagonal(&self) -> f64 {
        self.with_kernel_rows(|rows| (0..rows.len()).map(|i| rows.diagonal(i)).fold(0.0, f64::max))
    }

    /// One run over kernel values of this precision. Smooth losses need few products with the matrix and go to Newton's method;
    /// so do tight tolerances, and starts that are near. Losses with kinks go by blocks of dual descent first.
    fn over_kernel(&self, task: &Task<'_>, precision: GramPrecision, start: &Start, tol: f64) -> Result<Ending> {
        let Task { problem, choice, .. } = *task;
        let settings = &Settings { tol, ..*task.settings };
        let fits = self.fits(precision);
        let tight = GramPrecision::for_tolerance(tol) == GramPrecision::Double;
        let few = problem.y.len() <= WHOLE;
        let at_once = choice == SolverChoice::Newton
            || choice == SolverChoice::Auto && (problem.loss.is_smooth() || tight && few || start.hard);
        if at_once && (fits || problem.loss.is_smooth()) {
            return self.kernel_newton(task, precision, start, settings);
        }
        let helped = choice != SolverChoice::Dcd && settings.max_iter.is_none() && fits;
        let found = match precision {
            GramPrecision::Single => self.blocks::<f32>(task, precision, start, settings, helped)?,
            GramPrecision::Double => self.blocks::<f64>(task, precision, start, settings, helped)?,
        };
        if helped && found.stop == StopReason::Iterations {
            let start = Start { hard: true, ..found.start(problem) };
            let ending = self.kernel_newton(task, precision, &start, settings)?;
            return Ok(Ending { hard: true, ..ending.after(&found.solver) });
        }
        Ok(found)
    }

    /// Blocks of dual descent, over the matrix if it is there; until they crawl, if something else can then help.
    fn blocks<T: Stored>(
        &self,
        task: &Task<'_>,
        precision: GramPrecision,
        start: &Start,
        settings: &Settings,
        helped: bool,
    ) -> Result<Ending> {
        let Task { problem, control, .. } = *task;
        let m = problem.y.len();
        let resident = self.shared && self.fits(precision);
        let patience = Patience { passes: PASSES, leave_when_crawling: helped && !resident, indefinite: false };
        let found = if resident {
            let rows = self.gram(precision, control)?.rows::<T>().unwrap_or_default();
            let most = helped.then(|| BLOCKS * m.div_ceil(BLOCK_ROWS)).or(settings.max_iter);
            let settings = Settings { max_iter: most, ..*settings };
            let guess = start.dual_guess(problem);
            let store = RowStore::whole(rows, control);
            decomposition::descend_from(store, problem, (&guess, start.intercept), &settings, patience, control)?
        } else {
            let from = (!start.w.is_empty()).then_some((start.w.as_slice(), start.intercept));
            self.with_kernel_rows(|rows| decomposition::descend::<T>(rows, problem, from, settings, patience, control))?
        };
        let c = found.a.iter().zip(problem.y).map(|(a, y)| a * y).collect();
        let margins = found.scores.iter().zip(problem.y).map(|(f, y)| y * (f + found.intercept)).collect();
        let ending = Ending::of_coefficients(c, found.intercept, found.v, found.stop, found.blocks);
        Ok(Ending { margins: Some(margins), ..ending })
    }

    /// What Newton's method works on: of few rows the whole matrix, which is factored, of many tiles, which are multiplied with.
    fn newton_matrix(&self, task: &Task<'_>, precision: GramPrecision) -> Result<KernelMatrix<'_>> {
        let Task { problem, control, .. } = *task;
        let m = problem.y.len();
        let Some(rows) = self.prepared.as_ref().filter(|_| m > WHOLE || !self.fits(precision)) else {
            return Ok(KernelMatrix::Whole(self.gram(precision, control)?));
        };
        let precision = match precision {
            GramPrecision::Double => TilePrecision::Double,
            GramPrecision::Single if self.fixed(task, precision, m).is_some() => TilePrecision::Fixed,
            GramPrecision::Single => TilePrecision::Single,
        };
        Ok(KernelMatrix::Tiled(self.tiles(rows, precision, control)?, rows))
    }

    fn kernel_newton(
        &self,
        task: &Task<'_>,
        precision: GramPrecision,
        start: &Start,
        settings: &Settings,
    ) -> Result<Ending> {
        let problem = task.problem;
        let tiled = self.prepared.is_some() && (problem.y.len() > WHOLE || !self.fits(precision));
        // Where fixed point did not do, what it found tells the pieces.
        let again = !task.fixed && precision == GramPrecision::Single;
        let pieces = match tiled && (start.w.is_empty() || again) {
            true => self.pieces(task, start)?,
            false => None,
        };
        let here = self.products.is_none() && settings.max_iter.is_none();
        match pieces {
            Some(pieces) if here && problem.loss.leaves_out() => {
                self.by_supporting_rows(task, precision, start, pieces, settings)
            }
            pieces => {
                let rounding = self.fixed(task, precision, problem.y.len()).filter(|_| tiled).unwrap_or(0.0);
                let settings = Settings { tol: settings.tol - rounding, ..*settings };
                self.newton_from(task, precision, start, pieces, &settings)
            }
        }
    }

    /// Newton's method over the kernel matrix of all rows, from a start and what is believed of where it ends.
    fn newton_from(
        &self,
        task: &Task<'_>,
        precision: GramPrecision,
        start: &Start,
        pieces: Option<Pieces>,
        settings: &Settings,
    ) -> Result<Ending> {
        let Task { problem, control, .. } = *task;
        let (m, gram) = (problem.y.len(), self.newton_matrix(task, precision)?);
        let space = CoefficientSpace::new(gram, problem.y, problem.bias, start.vector(m), start.intercept)?;
        let mut space = space.guessing(pieces);
        let mut found = newton::newton(&mut space, problem, start.multipliers(m), settings, control)?;
        // The dual point has exact zeros where the primal one may have none: prefer it. A loss with kinks goes a little further if
        // it is not good enough; of a smooth one every full step leaves the zeros, and what a shorter one left is kept.
        let zeros = |c: &[f64]| found.a.iter().zip(c).all(|(a, c)| *a != 0.0 || *c == 0.0);
        let rounds = if problem.loss.is_smooth() { usize::from(!zeros(space.coefficients())) } else { 3 };
        for _ in 0..rounds {
            let mut dual = space.at(found.a.iter().zip(problem.y).map(|(a, y)| a * y).collect())?;
            let v = problem.loss_part(&found.a, space.margins());
            let (certificate, a) = newton::certificate(&mut dual, problem, v.clone())?;
            if certificate.gap() <= settings.tol.max(found.certificate.gap()) {
                dual.take_factor(&mut space);
                (found.certificate, found.a, space) = (certificate, a, dual);
                break;
            }
            if found.stop != StopReason::Gap || problem.loss.is_smooth() {
                break;
            }
            let further = Settings { tol: 0.2 * found.certificate.gap().min(settings.tol), ..*settings };
            let next = newton::newton(&mut space, problem, v, &further, control)?;
            found = newton::NewtonEnd { steps: found.steps + next.steps, stop: found.stop, ..next };
        }
        let dual = Some(problem.loss_part(&found.a, space.margins()));
        let solver = match space.products {
            0 => "newton (kernel matrix)".into(),
            products => format!("newton (kernel matrix, {products} products)"),
        };
        let functions = ScoreFunctions::coefficients(space.coefficients().to_vec(), space.intercept());
        let margins = Some(space.margins().to_vec());
        let ending = Ending::plain(functions, dual, found.stop, found.steps, solver);
        Ok(Ending { margins, factor: space.into_factor(), hard: start.hard, ..ending })
    }

    /// From coefficients of rows to a weight vector.
    fn to_weights(&self, ending: Ending) -> Ending {
        let ScoreFunctions::Kernel { coefficients, intercepts, .. } = ending.functions else { return ending };
        let mut weights = vec![0.0; self.rows.cols()];
        for (i, &c) in coefficients[0].iter().enumerate().filter(|(_, c)| **c != 0.0) {
            with_rows!(self.rows, x => x.axpy(i, c, &mut weights));
        }
        let functions = ScoreFunctions::Linear { weights: vec![weights], intercepts };
        Ending { functions, solver: "newton (inner products of rows)".into(), ..ending }
    }

    /// What can be said of where a solver ended. That it stopped for its gap is true only if the gap is what it believed.
    fn certified(&self, task: &Task<'_>, ending: Ending) -> Result<Solved> {
        let Ending { functions, dual, stop, iterations, solver, factor, certified, .. } = ending;
        let slopes = dual.is_none();
        let (functions, found) = match certified {
            Some(found) if found.certificate.gap() <= task.settings.tol => (functions, found),
            _ => self.best_stretched(task, functions, dual, stop)?,
        };
        let slopes = slopes && !bends(task.problem, &found);
        // A solver that believed in its gap was misled by rounding.
        let stop = if stop == StopReason::Gap { StopReason::Precision } else { stop };
        let stop = stop.judge(Some(found.certificate.gap()), None, task.settings.tol);
        Ok(Solved {
            functions,
            a: found.a,
            slopes,
            v: found.v,
            certificate: Some(found.certificate),
            stop,
            iterations,
            solver,
            margins: found.margins,
            norms2: found.norms2,
            norm: found.norm,
            factor,
        })
    }

    /// The matrix in double precision, where many problems share it and it fits beside what their solver works on, or where others
    /// multiply with it: each problem is certified by products with it.
    fn kept_in_double(&self, control: Control<'_>) -> Result<Option<(&Tiles, &KernelRows<'a>)>> {
        let needed = Gram::bytes(self.rows.rows(), GramPrecision::Double);
        let kept = self.products.is_some() || self.shared && needed <= self.settings.memory;
        let Some(rows) = self.prepared.as_ref().filter(|_| kept) else {
            return Ok(None);
        };
        Ok(Some((self.tiles(rows, TilePrecision::Double, control)?, rows)))
    }

    /// A score function with its certificate; where a hinge is weighed so much that what rounding leaves below its kink outweighs
    /// all else, that of the function stretched a little, which takes every margin beyond the kink.
    fn best_stretched(
        &self,
        task: &Task<'_>,
        functions: ScoreFunctions,
        dual: Option<Vec<f64>>,
        stop: StopReason,
    ) -> Result<(ScoreFunctions, Certified)> {
        // Of few support rows the values are computed sooner than the memory for all of them is there.
        let support = functions.vectors()[0].iter().filter(|c| **c != 0.0).count();
        let kept = match FEW_SUPPORT * support <= task.problem.y.len() && self.products.is_none() {
            true => None,
            false => self.kept_in_double(task.control)?,
        };
        let product = kept.map(|(tiles, rows)| move |v: &[f64]| tiles.multiply(rows, v));
        let product = product.as_ref().map(|product| product as KernelProduct<'_>);
        let certified = |functions: &ScoreFunctions, dual: Option<Vec<f64>>| {
            certify(task.problem, self.rows, self.kernel, functions, dual, product, task.control)
        };
        let kinks = !task.problem.loss.is_smooth() && matches!(stop, StopReason::Gap | StopReason::Precision);
        let mut best = (certified(&functions, dual.clone())?, functions);
        if !kinks || best.0.certificate.gap() <= task.settings.tol {
            return Ok((best.1, best.0));
        }
        let whole = best.1.clone();
        for stretch in STRETCHES {
            let functions = stretched(&whole, stretch);
            let found = certified(&functions, dual.clone())?;
            if found.certificate.gap() < best.0.certificate.gap() {
                best = (found, functions);
            }
        }
        Ok((best.1, best.0))
    }

    /// Over a kernel that is not positive semidefinite there is no duality and no certificate: descent until nothing moves.
    fn indefinite(&self, task: &Task<'_>) -> Result<Solved> {
        let Task { problem, settings, control, .. } = *task;
        let patience = Patience { passes: PASSES, leave_when_crawling: false, indefinite: true };
        let found = self.with_kernel_rows(|rows| match GramPrecision::for_tolerance(settings.tol) {
            GramPrecision::Single => decomposition::descend::<f32>(rows, problem, None, settings, patience, control),
            GramPrecision::Double => decomposition::descend::<f64>(rows, problem, None, settings, patience, control),
        })?;
        let c: Vec<f64> = found.a.iter().zip(problem.y).map(|(a, y)| a * y).collect();
        let scores = KernelRows::new(self.kernel, self.rows, 0.0).product(&c, control)?;
        let intercept = found.intercept;
        Ok(Solved {
            margins: scores.iter().zip(problem.y).map(|(f, y)| y * (f + intercept)).collect(),
            norms2: None,
            norm: linalg::dot(&c, &scores).max(0.0).sqrt(),
            functions: ScoreFunctions::coefficients(c, intercept),
            a: found.a,
            v: found.v,
            slopes: false,
            certificate: None,
            stop: found.stop,
            iterations: found.blocks,
            solver: format!("dcd ({} blocks)", found.blocks),
            factor: None,
        })
    }
}

/// How far a score function is stretched where rounding leaves its margins short of a kink.
const STRETCHES: [f64; 4] = [1e-13, 1e-11, 1e-9, 1e-7];

/// The score function times a number a little above 1.
fn stretched(functions: &ScoreFunctions, by: f64) -> ScoreFunctions {
    let mut functions = functions.clone();
    let (ScoreFunctions::Linear { weights: vectors, intercepts }
    | ScoreFunctions::Kernel { coefficients: vectors, intercepts, .. }) = &mut functions;
    vectors.iter_mut().flatten().chain(intercepts).for_each(|value| *value *= 1.0 + by);
    functions
}

fn prepare<'a>(kernel: Kernel, rows: &'a Matrix<'a>, settings: &Settings) -> KernelRows<'a> {
    KernelRows::new(kernel, rows, 0.0).rounded(0.01 * settings.tol)
}

fn linear_newton(task: &Task<'_>, mut space: WeightSpace<'_>, multipliers: Vec<f64>) -> Result<Ending> {
    let Task { problem, settings, control, .. } = *task;
    let found = newton::newton(&mut space, problem, multipliers, settings, control)?;
    let solver = match space.products {
        0 => "newton (normal equations)".to_string(),
        products => format!("newton (conjugate gradients, {products} products)"),
    };
    let dual = (!problem.loss.is_smooth()).then(|| problem.loss_part(&found.a, space.margins()));
    let margins = Some(space.margins().to_vec());
    let (design, w, factor) = space.end();
    Ok(Ending { margins, factor, ..Ending::of_weights(design, w, dual, found.stop, found.steps, solver) })
}

/// Whether rounding of the margins moves the slopes of the loss so far that they are another dual point.
fn bends(problem: &MarginProblem<'_>, found: &Certified) -> bool {
    let Some(norms2) = &found.norms2 else { return true };
    let row = |i: usize| problem.weights[i] * problem.loss.curvature(found.margins[i]) * norms2[i];
    (0..norms2.len()).any(|i| row(i) > 1e6)
}
