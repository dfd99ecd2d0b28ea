package servers

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/waiting"
)

// conversation is all that one client sends, until it leaves. What it sends follows from the random numbers. It
// returns how many messages that were.
type conversation func(ctx context.Context, r *rand.Rand) int

// campaign is a series of conversations of some clients at once.
type campaign struct {
	w    *world
	from uint64 // the number of the first conversation, so that each is another one
	sent int
	took time.Duration
}

// speak has clients at once until so many messages were sent and so much time has passed, or the agent has ended.
func (c *campaign) speak(p phase, messages int, least time.Duration, talk conversation) (took time.Duration) {
	var sent atomic.Int64
	var number atomic.Uint64
	number.Store(c.from)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var clients sync.WaitGroup
	began := time.Now()
	c.w.now.Store(int32(p))
	for range max(2, runtime.GOMAXPROCS(0)/2) {
		clients.Go(func() {
			for (sent.Load() < int64(messages) || time.Since(began) < least) && c.w.agent.alive() {
				began := time.Now()
				sent.Add(int64(talk(ctx, randomOf(number.Add(1)))))
				_ = waiting.Sleep(ctx, time.Since(began)) // the friends are on the same machine
			}
		})
	}
	clients.Wait()
	c.w.now.Store(int32(unmeasured))
	took = time.Since(began)
	c.from, c.sent, c.took = number.Load(), c.sent+int(sent.Load()), c.took+took
	return took
}

// randomOf are the random numbers of a conversation.
func randomOf(number uint64) *rand.Rand { return rand.New(rand.NewPCG(*seed, number)) }

// rounds is how often the attacker and a harmless client take turns, so that both meet the same machine.
const rounds = 5

// tries is how often friends may be slow before that is the attacker's work, and not that of others on the machine.
const tries = 3

// attack sends as many messages as the flag says, in turn with a harmless client for as long.
func (w *world) attack(hostile, friendly conversation) {
	w.tb.Helper()
	enemies, guests := &campaign{w: w}, &campaign{w: w}
	for range tries {
		for _, f := range w.friends {
			f.forget()
		}
		for range rounds {
			took := enemies.speak(attacked, *steps/rounds, 0, hostile)
			guests.speak(harmless, 0, took, friendly)
		}
		if !slices.ContainsFunc(w.friends, func(f *friend) bool { return f.slow(*ratio) }) {
			break
		}
	}
	w.tb.Logf("%d hostile messages in %s, in %d conversations; %d harmless ones in %s",
		enemies.sent, enemies.took.Round(time.Millisecond), enemies.from, guests.sent, guests.took.Round(time.Millisecond))
	w.judge(*ratio)
}
