// Package simulate runs a whole mesh in one process on the clock of a testing/synctest bubble: clusters whose agents
// publish, mirror, read and answer DNS questions ([agents]), a workload, and faults of every kind. All of it follows a
// [Plan], which a seed makes, and which can be written and read as text. A judge, who records what every kvstore has
// acknowledged when, looks at what the programs show:
//
//   - At any time, data that are reported as known as of a time show, for each key, a value that the kvstore had at that
//     time or later. So nothing is deleted without evidence, and no freshness is false.
//   - A change is visible at once where no fault is active, and no key is deleted and written again without a reason.
//   - A view does not go back to an earlier value of a key.
//   - The changes of a view have one order, each comes once and none is missing.
//   - No number of an identity has two meanings, at any revision.
//   - Once the faults have ended and nothing changes, each kvstore has the described objects, each view equals the model
//     ([model]), each copy its original, and DNS answers with the backends of the model. A cluster that is no longer read
//     vanishes.
//
// A run that fails prints its seed and its plan. Goroutines run in another order each time, so a plan may need some runs
// to fail again. Package replay, a command, repeats runs exactly.
//
//	make simulate SEEDS=1000 HOURS=2
//	go test ./simtest/simulate -run Campaign -v -simulate.hours=2 -simulate.seed=7
//	go test ./simtest/simulate -run Campaign -v -simulate.hours=2 -simulate.plan=plan.txt
//
// Package mutants, a command, makes errors and reports which of them the judge finds. Package record, another one, runs
// campaigns and notes them in docs/correctness.md.
//
// [agents]: github.com/mesh-agent/mesh-agent/simtest/agents
// [model]: github.com/mesh-agent/mesh-agent/simtest/model
package simulate
