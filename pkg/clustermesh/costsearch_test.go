package clustermesh

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// A search that keeps what costs more than before finds nothing worse.
func TestASearchFindsNoCostlierValue(t *testing.T) {
	steps := 5000
	if testing.Short() {
		steps = 100
	}
	for name, c := range costs(t) {
		s := search{random: rand.New(rand.NewPCG(1, 2)), cost: c, tokens: tokens()}
		for _, seed := range c.seeds(t) {
			s.add(seed)
		}
		for range steps {
			s.step()
		}
		if r, err := c.worstRatio(s.best()); r > maxRatio {
			t.Errorf("%s costs %.1f times its bytes (%v): %q", name, r, err, s.best())
		}
	}
}

// tokens are small parts of values.
func tokens() [][]byte {
	var all [][]byte
	for _, text := range []string{
		"{},", "0,", `"",`, "null,", "[", "]", "{", "}", `"":`, `"a":{},`, `"::1":{},`, `{"":{}},`, "[[", `"\u0041"`, ";", "a;",
		"\x42\x00", "\x4a\x00", "\x2a\x00", "\x32\x00", "\x0a\x00", "\x12\x02\x08\x01", "\x1a\x01a", "\x3a\x01b",
	} {
		all = append(all, []byte(text))
	}
	return all
}

// search looks for values that cost much: it changes one of the costliest that
// it knows, and keeps the change if it costs more.
type search struct {
	random *rand.Rand
	cost   costOf
	tokens [][]byte
	pool   []costly // at most poolOfSearch, the costliest first
}

type costly struct {
	value []byte
	ratio float64
}

const poolOfSearch = 16

func (s *search) best() []byte { return s.pool[0].value }

func (s *search) add(value []byte) {
	r, _ := s.cost.ratio(value)
	at, _ := slices.BinarySearchFunc(s.pool, r, func(c costly, r float64) int { return cmp.Compare(r, c.ratio) })
	s.pool = slices.Insert(s.pool, at, costly{value, r})
	s.pool = s.pool[:min(len(s.pool), poolOfSearch)]
}

func (s *search) step() {
	value := slices.Clone(s.any().value)
	for range 1 + s.random.IntN(3) {
		value = s.change(value)
	}
	s.add(value)
}

func (s *search) any() costly { return s.pool[s.random.IntN(len(s.pool))] }

// change repeats, cuts, replaces or inserts a part of a value.
func (s *search) change(value []byte) []byte {
	i, j := s.part(value)
	const most = 16 << 10
	switch s.random.IntN(5) {
	case 0:
		times := 1 + s.random.IntN(200)
		if (j-i)*times > most {
			times = 1
		}
		return slices.Insert(value, i, bytes.Repeat(value[i:j], times)...)[:min(len(value)+(j-i)*times, most)]
	case 1:
		return slices.Delete(value, i, j)
	case 2:
		from := s.any().value
		k, l := s.part(from)
		return slices.Replace(value, i, j, from[k:l]...)
	case 3:
		token := s.tokens[s.random.IntN(len(s.tokens))]
		return slices.Insert(value, i, bytes.Repeat(token, 1+s.random.IntN(100))...)
	default:
		if i < len(value) {
			value[i] = byte(s.random.Uint32())
		}
		return value
	}
}

// part picks a part of a value, mostly a short one.
func (s *search) part(value []byte) (i, j int) {
	i = s.random.IntN(len(value) + 1)
	return i, i + s.random.IntN(min(len(value)-i, 1+s.random.IntN(200))+1)
}
