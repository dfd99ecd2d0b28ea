package servers

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// conversation sends all messages of one client, until it disconnects. The messages depend only on the random numbers.
// It returns the number of messages.
type conversation func(ctx context.Context, r *rand.Rand) int

// campaign is a series of conversations of several clients at once.
type campaign struct {
	w    *world
	from uint64 // the number of the first conversation, so that each one differs
	sent int
	took time.Duration
}

// speak runs clients at once until enough messages were sent, enough time has passed and each friend was answered, or
// the agent has ended. A friend without an answer for very long does not delay it.
func (c *campaign) speak(p phase, messages int, least time.Duration, talk conversation) (took time.Duration) {
	var sent atomic.Int64
	var number atomic.Uint64
	number.Store(c.from)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var clients sync.WaitGroup
	began, before := time.Now(), c.w.answers(p)
	c.w.now.Store(int32(p))
	goesOn := func() bool {
		took := time.Since(began)
		return sent.Load() < int64(messages) || took < least || took < 10*friendlyTime && !c.w.moreThan(before, p)
	}
	for range *atOnce {
		clients.Go(func() {
			for goesOn() && c.w.agent.alive() {
				began := time.Now()
				sent.Add(int64(talk(ctx, randomOf(number.Add(1)))))
				_ = waiting.Sleep(ctx, time.Since(began)) // the friends run on the same machine
			}
		})
	}
	clients.Wait()
	c.w.now.Store(int32(unmeasured))
	took = time.Since(began)
	c.from, c.sent, c.took = number.Load(), c.sent+int(sent.Load()), c.took+took
	return took
}

// answers is the number of answers of each friend in a phase.
func (w *world) answers(p phase) []int {
	all := make([]int, len(w.friends))
	for i, f := range w.friends {
		all[i] = f.answers(p)
	}
	return all
}

// moreThan reports whether each friend had more answers in the phase than before.
func (w *world) moreThan(before []int, p phase) bool {
	for i, f := range w.friends {
		if f.answers(p) <= before[i] {
			return false
		}
	}
	return true
}

// randomOf are the random numbers of a conversation.
func randomOf(number uint64) *rand.Rand { return rand.New(rand.NewPCG(*seed, number)) }

// rounds is how often the attacker and a harmless client take turns, so that both find the machine in the same
// condition.
const rounds = 5

// harmlessMost is the maximum duration of a harmless client: long enough to measure the friends.
const harmlessMost = time.Minute

// tries is how often friends may be slow before the attacker is the cause, and not other work of the machine.
const tries = 3

// attack sends as many messages as the flag sets, in turn with a harmless client.
func (w *world) attack(hostile, friendly conversation) {
	w.tb.Helper()
	enemies, guests := &campaign{w: w}, &campaign{w: w}
	for range tries {
		for _, f := range w.friends {
			f.forget()
		}
		for range rounds {
			took := enemies.speak(attacked, *steps/rounds, 0, hostile)
			guests.speak(harmless, 0, min(took, harmlessMost), friendly)
		}
		if !slices.ContainsFunc(w.friends, func(f *friend) bool { return f.slow(*ratio) }) {
			break
		}
	}
	w.tb.Logf("%d hostile messages in %s, in %d conversations; %d harmless ones in %s",
		enemies.sent, enemies.took.Round(time.Millisecond), enemies.from, guests.sent, guests.took.Round(time.Millisecond))
	w.judge(*ratio)
}
