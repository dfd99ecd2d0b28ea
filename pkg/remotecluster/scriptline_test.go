package remotecluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/guard"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
)

// arguments are the parts of a line after its first word.
type arguments struct {
	words  []string
	values map[string]string
	text   string // the quoted part
	wrong  *error // the first error of the parser
}

func parseArguments(line string) (arguments, error) {
	a := arguments{values: make(map[string]string), wrong: new(error)}
	if before, quoted, found := strings.Cut(line, `"`); found {
		text, err := strconv.Unquote(`"` + quoted)
		if err != nil {
			return a, fmt.Errorf("%s: %w", line, err)
		}
		line, a.text = before, text
	}
	for _, word := range strings.Fields(line) {
		if name, value, found := strings.Cut(word, "="); found {
			a.values[name] = value
		} else {
			a.words = append(a.words, word)
		}
	}
	return a, nil
}

func (a arguments) is(word string) bool { return slices.Contains(a.words, word) }
func (a arguments) unread() error       { return *a.wrong }

func (a arguments) number(name string) int {
	n, err := strconv.Atoi(a.values[name])
	if a.values[name] != "" && err != nil {
		*a.wrong = err
	}
	return n
}

func (a arguments) span(name string) time.Duration {
	d, err := time.ParseDuration(a.values[name])
	if a.values[name] != "" && err != nil {
		*a.wrong = err
	}
	return d
}

// error returns the text as an error; nil without one.
func (a arguments) error() error {
	kinds := map[string]error{
		"protocol": kvstore.ErrProtocol, "too-long": store.ErrListTooLong, "stopped": syncstore.ErrStopped, "cancelled": context.Canceled,
	}
	switch kind := a.values["kind"]; {
	case kind == "panic":
		return guard.Run(func() error { panic(a.text) })
	case kind == "unusable":
		return &unusable{errors.New(a.text)}
	case kind != "" && a.text == "":
		return kinds[kind]
	case kind != "":
		return fmt.Errorf("%w: %s", kinds[kind], a.text)
	case a.text == "":
		return nil
	}
	return errors.New(a.text)
}
