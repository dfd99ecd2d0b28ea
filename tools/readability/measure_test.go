package readability

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

var (
	sentenceEnd = regexp.MustCompile(`[.!?][)"']?\s+`)
	word        = regexp.MustCompile(`[\p{L}\p{N}][\p{L}\p{N}'’./:@_-]*`)
	letters     = regexp.MustCompile(`^[A-Za-z]+$`)
	abbreviated = regexp.MustCompile(`(?:e\.g|i\.e|etc|vs|No)\.$`)
)

// sentences splits a text. A full stop ends a sentence when the next word does not begin in lower case.
func sentences(text string) []string {
	var all []string
	start := 0
	for _, at := range sentenceEnd.FindAllStringIndex(text, -1) {
		next := text[at[1]:]
		if next != "" && 'a' <= next[0] && next[0] <= 'z' || abbreviated.MatchString(text[start:at[0]+1]) {
			continue
		}
		all = append(all, strings.TrimSpace(text[start:at[1]]))
		start = at[1]
	}
	if rest := strings.TrimSpace(text[start:]); rest != "" {
		all = append(all, rest)
	}
	return all
}

func words(sentence string) []string { return word.FindAllString(sentence, -1) }

// set is a set of words.
type set map[string]bool

func setOf(text string) set {
	s := make(set)
	for _, w := range strings.Fields(text) {
		s[w] = true
	}
	return s
}

var (
	be = setOf("is are was were be been being isn't aren't wasn't weren't")
	// between may stand between the verb and its participle.
	between = setOf("not never always also only still then again all both each just already once now no either first")
	// irregular are the participles that do not end in "ed".
	irregular = setOf(`begun bound broken brought built bought caught chosen cut done drawn driven fed found forgotten frozen given
		had heard held hidden hit kept known laid led left lent lost made meant met overwritten paid put read rebuilt resent rewritten
		run said seen sent set shown shut split spent stolen stopped taken taught thought thrown understood unset withdrawn withheld won written`)
	// adjectives end in "ed" but are no participles, or describe a state and not an action.
	adjectives = setOf("need needed speed feed seed embed exceed proceed succeed indeed red unused unauthenticated unchanged unlimited unrelated interested related based limited nested trusted untrusted")
)

// passive reports whether a sentence has a form of "to be" with a participle.
func passive(sentence string) bool {
	after := 0 // how many words the participle may still be away
	for _, w := range words(sentence) {
		w = strings.Trim(strings.ToLower(w), ".:'-")
		switch {
		case be[w]:
			after = 3
		case after > 0 && (irregular[w] || strings.HasSuffix(w, "ed") && len(w) > 4 && !adjectives[w]):
			return true
		case between[w] || strings.HasSuffix(w, "ly"):
			after--
		default:
			after = 0
		}
	}
	return false
}

// vocabulary has the known words, and recognizes their forms.
type vocabulary set

// endings turn a form into the word that it is made of.
var endings = []struct{ end, instead string }{
	{"'s", ""},
	{"s", ""},
	{"es", ""},
	{"ies", "y"},
	{"ed", ""},
	{"ed", "e"},
	{"ied", "y"},
	{"ing", ""},
	{"ing", "e"},
	{"er", ""},
	{"er", "e"},
	{"est", ""},
	{"ly", ""},
	{"ily", "y"},
	{"able", ""},
	{"able", "e"},
	{"ation", "e"},
	{"ation", ""},
}

func (v vocabulary) knows(w string) bool {
	w = strings.ToLower(strings.ReplaceAll(w, "’", "'"))
	if v[w] {
		return true
	}
	for _, e := range endings {
		stem, is := strings.CutSuffix(w, e.end)
		if !is || len(stem) < 3 {
			continue
		}
		if v[stem+e.instead] || len(stem) > 3 && stem[len(stem)-1] == stem[len(stem)-2] && v[stem[:len(stem)-1]] {
			return true
		}
	}
	for _, prefix := range []string{"un", "re", "non", "pre"} {
		if stem, is := strings.CutPrefix(w, prefix); is && len(stem) > 3 && v[stem] {
			return true
		}
	}
	return false
}

// unknown returns the words of a text that the vocabulary does not know. A word with digits, dots or slashes is a name.
func (v vocabulary) unknown(text string) []string {
	var all []string
	for _, w := range words(text) {
		w = strings.Trim(w, ".:'-_/")
		for _, part := range strings.Split(strings.TrimSuffix(w, "'s"), "-") {
			if letters.MatchString(part) && part != code && len(part) > 1 && !v.knows(part) {
				all = append(all, strings.ToLower(part))
			}
		}
	}
	return all
}

// phrase is a turn that is hard to read, and what to write instead.
type phrase struct {
	pattern *regexp.Regexp
	instead string
}

// figures are the measurements of a page.
type figures struct {
	Sentences int
	Average   float64 // words of a sentence
	Long      int     // the maximum number of words in 95 of 100 sentences
	Passive   float64 // sentences with a passive construction, in percent
	Unknown   []string
	Phrases   []string
}

// shortest is the minimum number of words of a text that counts as a sentence: "yes" in a table does not.
const shortest = 4

// measure measures a page.
func measure(page string, v vocabulary, phrases []phrase) figures {
	var f figures
	var lengths []int
	total, passives := 0, 0
	for _, b := range blocks(page) {
		f.Unknown = append(f.Unknown, v.unknown(b.text)...)
		for _, s := range sentences(b.text) {
			for _, p := range phrases {
				if !b.heading && p.pattern.MatchString(s) {
					f.Phrases = append(f.Phrases, p.pattern.FindString(s)+" -> "+p.instead)
				}
			}
			n := len(words(s))
			if b.heading || n < shortest {
				continue
			}
			lengths = append(lengths, n)
			total += n
			if passive(s) {
				passives++
			}
		}
	}
	f.Sentences = len(lengths)
	if len(lengths) == 0 {
		return f
	}
	slices.SortFunc(lengths, cmp.Compare)
	f.Average = float64(total) / float64(len(lengths))
	f.Long = lengths[(len(lengths)*95+99)/100-1]
	f.Passive = 100 * float64(passives) / float64(len(lengths))
	return f
}
