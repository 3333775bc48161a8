//! The launches of a name: kernels in order, their cases, and dispatch.

use super::plan::{Plan, Verdict};
use super::table::{self, Table, Values};
use crate::bind::{BindError, bind};
use crate::contract::number::Number;
use crate::contract::stack_code::Flat;
use crate::contract::{Case, Contract, LaunchFile, Program, Temporary};
use crate::dispatch::Refused;
use crate::error::LaunchError;
use crate::overlap::may_overlap;
use crate::program::may_alias;
use crate::tensor::Argument;

/// The launch steps of a name.
pub(super) struct Steps {
    pub(super) name: String,
    pub(super) table: Table,
    /// The launches in order; for each, its cases.
    pub(super) steps: Vec<Vec<Plan>>,
    /// Temporaries: the index among the internal tensors, and the bytes.
    pub(super) temporaries: Vec<(usize, Temporary, Flat)>,
    /// Which of them the sizes are for that the caller chooses, and the places of these among the values.
    shared: usize,
    chosen_sizes: Vec<usize>,
    /// For each written tensor, the tensors that it may alias.
    pub(super) aliases: Vec<(usize, Vec<usize>)>,
}

/// A launch that was looked at: of each step the case and its blocks.
pub(super) type Chosen = Vec<(usize, [u32; 3])>;

impl Steps {
    /// Gets a kernel, a kernel with variants or a program from a module. Launches pass the tensors and values that are named
    /// here, in this order. Sizes and strides of these tensors follow from them; other strides
    /// are those of packed tensors, other scalars have their defaults.
    ///
    /// # Errors
    /// There is no such kernel, it has no such tensor or value, or needs another value that a launch does not pass.
    pub(super) fn new(file: &LaunchFile, name: &str, tensors: &[&str], values: &[&str]) -> Result<Steps, LaunchError> {
        let unknown =
            |name: &str| LaunchError::Misfit(format!("there is no kernel `{name}`; there are {:?}", file.names()));
        let program = file.programs.iter().find(|p| p.name == name);
        let names = program.map_or_else(|| vec![name.to_owned()], |p| p.launches.clone());
        let mut cases = Vec::new();
        for name in &names {
            let own = file.dispatch.iter().find(|d| d.kernel == *name).map(|d| d.cases.clone());
            let own = own.unwrap_or_else(|| vec![Case::alone(name)]);
            let contract = |case: Case| Some((file.contract(&case.entry)?.clone(), case));
            cases.push(own.into_iter().map(contract).collect::<Option<Vec<_>>>().ok_or_else(|| unknown(name))?);
        }
        let all: Vec<&Contract> = cases.iter().flatten().map(|(contract, _)| contract).collect();
        let variants: Vec<Vec<&Contract>> = cases.iter().map(|cases| cases.iter().map(|(c, _)| c).collect()).collect();
        let firsts: Vec<&Contract> = cases.iter().filter_map(|cases| cases.first()).map(|(c, _)| c).collect();
        Program::new(name, &firsts).map_err(|misfits| LaunchError::Misfit(misfits.join("\n")))?;
        let table = Table::new(&all, tensors, values)?;
        let steps = cases.iter().map(|cases| cases.iter().map(|(c, case)| Plan::new(c, case, &table)).collect());
        let steps = steps.collect::<Result<Vec<Vec<Plan>>, LaunchError>>()?;
        let mut temporaries = Vec::new();
        for temporary in program.into_iter().flat_map(|p| &p.temporaries) {
            if let Some(table::AddressSource::Own(own)) = table.taken(&temporary.name) {
                temporaries.push((own, temporary.clone(), table::flatten(&temporary.bytes, &table)?));
            }
        }
        let scratch = |name: &String| table::tensor(&all, name).is_some_and(|t| t.scratch.is_some());
        let nobodys = |(i, name): &(usize, &String)| !scratch(name) && temporaries.iter().all(|(own, ..)| own != i);
        if let Some((_, name)) = table.own().iter().enumerate().find(nobodys) {
            return Err(LaunchError::tensor(name, "the kernel takes it, and the launcher does not pass it"));
        }
        let written = |name: &&str| all.iter().filter_map(|c| c.param(name)?.kind.tensor()).any(|t| t.access.writes());
        let place = |name: &str| tensors.iter().position(|t| *t == name);
        let aliases = tensors.iter().enumerate().filter(|(_, name)| written(name));
        let aliases =
            aliases.map(|(i, name)| (i, may_alias(&variants, name).iter().filter_map(|t| place(t)).collect()));
        let aliases = aliases.collect();
        let (shared, chosen_sizes) = (file.shared_launch(name), file.chosen_sizes(name));
        let chosen_sizes = chosen_sizes.iter().filter_map(|size| values.iter().position(|v| v == size)).collect();
        Ok(Steps { name: name.to_owned(), table, steps, temporaries, shared, chosen_sizes, aliases })
    }

    /// The kernels of a launch with their blocks.
    pub(super) fn chosen<'k>(&'k self, chosen: &Chosen) -> impl Iterator<Item = (&'k Plan, [u32; 3])> {
        let taken = self.steps.iter().zip(chosen).filter(|(_, (_, grid))| !grid.contains(&0));
        taken.map(|(cases, (case, grid))| (&cases[*case], *grid))
    }

    /// Checks a launch, and chooses the case of each step.
    pub(super) fn choose(
        &self,
        passed: &[Option<Number>],
        tensors: &[Argument<'_>],
    ) -> Result<(Values, Chosen), LaunchError> {
        self.table.accept(tensors)?;
        let values = self.table.values(passed, tensors)?;
        self.table.check(tensors, &values)?;
        let mut chosen = Vec::with_capacity(self.steps.len());
        for cases in &self.steps {
            let verdicts = cases.iter().map(|plan| plan.verdict(&values.ints, tensors)).enumerate();
            let found = verdicts.into_iter().find_map(|(case, verdict)| match verdict {
                Verdict::Launch(grid) => Some((case, grid)),
                Verdict::Nothing => Some((case, [0; 3])),
                Verdict::Refused => None,
            });
            chosen.push(found.ok_or_else(|| self.refusal(cases, &values, tensors))?);
        }
        if chosen.iter().any(|(_, grid)| !grid.contains(&0)) {
            self.check_overlaps(tensors)?;
        }
        Ok((values, chosen))
    }

    /// The launch that sizes are for which the caller chooses: its step, and its case for these values and tensors; `None` where it has no
    /// blocks. Such sizes count as 1 where they are not given, or are 0.
    pub(super) fn shared(
        &self,
        passed: &[Option<Number>],
        tensors: &[Argument<'_>],
    ) -> Result<Option<(usize, usize)>, LaunchError> {
        let mut passed = passed.to_vec();
        for &place in &self.chosen_sizes {
            match passed.get_mut(place) {
                Some(value) if value.is_none_or(|n| n.to_i64() == Some(0)) => *value = Some(Number::Int(1)),
                Some(_) | None => {}
            }
        }
        let (_, chosen) = self.choose(&passed, tensors)?;
        let (case, grid) = chosen[self.shared];
        Ok((!grid.contains(&0)).then_some((self.shared, case)))
    }

    /// Why no case can be launched.
    fn refusal(&self, cases: &[Plan], values: &Values, tensors: &[Argument<'_>]) -> LaunchError {
        let all = self.table.args(values);
        let mut refused = Vec::new();
        for plan in cases {
            let mut why: Vec<String> = Vec::new();
            match bind(&plan.contract, &plan.args(&all)) {
                // Missing values and wrong types are the same for all cases.
                Err(errors) if cases.len() == 1 || !errors.iter().all(BindError::depends_on_size) => {
                    return LaunchError::Bind(errors);
                }
                Err(errors) => why.extend(errors.iter().map(ToString::to_string)),
                Ok(_) => {}
            }
            let holds = plan.when.iter().map(|condition| condition.holds(&values.ints));
            let broken = plan.when_texts.iter().zip(holds).filter(|(_, holds)| !holds);
            why.extend(broken.map(|(text, _)| Refused::condition(text)));
            if let Some((at, align)) = plan.misaligned(tensors) {
                let what = format!("its address is not a multiple of {align} bytes");
                let misaligned = LaunchError::tensor(self.table.name(at), what);
                if cases.len() == 1 {
                    return misaligned;
                }
                why.push(misaligned.to_string());
            }
            refused.push(Refused { variant: plan.name.clone(), why });
        }
        let nearest = Refused::nearest(refused);
        nearest.map_or_else(|| LaunchError::Misfit("the kernel has no variant".to_owned()), LaunchError::from)
    }

    /// Refuses a tensor that is written and shares memory with another one, but where the contract allows it.
    pub(super) fn check_overlaps(&self, tensors: &[Argument<'_>]) -> Result<(), LaunchError> {
        for (over, allowed) in &self.aliases {
            let written = &tensors[*over];
            let Some(begin) = written.address() else { continue };
            for (under, other) in tensors.iter().enumerate().filter(|(under, _)| under != over) {
                let Some(at) = other.address() else { continue };
                if !may_overlap(&written.place(begin), &other.place(at)) {
                    continue;
                }
                let mut steps = written.shape().iter().zip(written.strides()).zip(other.strides());
                let alike = at == begin
                    && written.shape() == other.shape()
                    && steps.all(|((n, one), same)| *n == 1 || one == same);
                if !(alike && written.is_distinct() && allowed.contains(&under)) {
                    let what = format!(
                        "it is written, and shares memory with `{}`, which the contract does not allow",
                        self.table.name(under)
                    );
                    return Err(LaunchError::tensor(self.table.name(*over), what));
                }
            }
        }
        Ok(())
    }
}
