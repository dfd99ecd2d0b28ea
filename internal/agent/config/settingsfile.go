package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// readFile sets the values of the file that have no other source. A mistake in the file is an error also when another
// source has priority: the file must be corrected anyway.
func (s *Settings) readFile() error {
	content, err := os.ReadFile(s.file)
	if err != nil {
		return fmt.Errorf("%s: %w", s.from["config"], err)
	}
	values, err := parseSettings(content)
	if err != nil {
		return fmt.Errorf("%s: %w", s.file, err)
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := s.setFromFile(key, values[key]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", s.file, key, err))
		}
	}
	return errors.Join(errs...)
}

func parseSettings(content []byte) (map[string]json.RawMessage, error) {
	text, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return nil, fmt.Errorf("no valid YAML: %w", err)
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return nil, errors.New("it is not a mapping of settings to values, such as cluster-name: east")
	}
	return values, nil
}

func (s *Settings) setFromFile(key string, raw json.RawMessage) error {
	f := s.flags.Lookup(key)
	if f == nil {
		return errors.New("unknown setting; the keys are the names of the flags of 'mesh-agent run'")
	}
	text, err := settingText(f, raw)
	if err != nil {
		return err
	}
	if s.from[key] != "" {
		// Another source has priority: a separate flag reports whether the value is valid.
		spare := NewSettings()
		f = spare.flags.Lookup(key)
	} else {
		s.from[key] = s.file + ": " + key
	}
	if err := setFlag(f, text); err != nil {
		return fmt.Errorf("%s: %w", refused(f, string(raw)), err)
	}
	return nil
}

// settingText converts a value of the file into text that a flag of this type accepts. A value of another type is
// refused: YAML parses 1e3 as a number, and no as false.
func settingText(f *pflag.Flag, raw json.RawMessage) (string, error) {
	kind := f.Value.Type()
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return "", err
	}
	switch v := v.(type) {
	case string:
		if kind != "uint32" && kind != "int" && kind != "bool" {
			return v, nil
		}
	case bool:
		if kind == "bool" {
			return string(raw), nil
		}
	case json.Number:
		if kind == "uint32" || kind == "int" || kind == "duration" {
			return v.String(), nil
		}
	case map[string]any:
		if kind == new(keyValues).Type() {
			return mapText(v)
		}
	}
	return "", fmt.Errorf("%s is not %s", refused(f, string(raw)), wantedText(kind))
}

func wantedText(kind string) string {
	switch kind {
	case "uint32", "int":
		return "a whole number"
	case "bool":
		return "true or false"
	case "duration":
		return "a duration with its unit, such as 30s"
	case new(keyValues).Type():
		return "a map of options to values, or text like key=value"
	default:
		return "text; put it in quotes"
	}
}

func mapText(m map[string]any) (string, error) {
	texts := make(map[string]string, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		switch v := m[key].(type) {
		case string, bool, json.Number:
			texts[key] = fmt.Sprint(v)
		default:
			return "", fmt.Errorf("%s: its value is not a text or a number", key)
		}
	}
	text, err := json.Marshal(texts)
	return string(text), err
}

// keyValues is a flag that may be repeated: key=value, several of them separated by commas, or one JSON map. Its text
// is a JSON map.
type keyValues map[string]string

func (k *keyValues) Set(arg string) error {
	if *k == nil {
		*k = make(keyValues)
	}
	if strings.HasPrefix(strings.TrimSpace(arg), "{") {
		var m map[string]string
		if err := json.Unmarshal([]byte(arg), &m); err != nil {
			return fmt.Errorf("not a JSON map of texts: %w", err)
		}
		maps.Copy(*k, m)
		return nil
	}
	pairs := strings.Split(arg, ",")
	for i, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return fmt.Errorf("option %d of %d is not key=value", i+1, len(pairs)) // no value in the message: it may be secret
		}
		(*k)[key] = value
	}
	return nil
}

// String returns a JSON map; empty for none.
func (k *keyValues) String() string {
	if k == nil || len(*k) == 0 {
		return ""
	}
	text, err := json.Marshal(*k)
	if err != nil {
		panic(err) // a map of strings
	}
	return string(text)
}

// Values returns the arguments that give a command-line flag its value again: more than one for a flag that may be
// repeated.
func Values(f *pflag.Flag) []string {
	pairs, many := f.Value.(*keyValues)
	if !many {
		return []string{f.Value.String()}
	}
	var values []string
	for _, key := range slices.Sorted(maps.Keys(*pairs)) {
		values = append(values, key+"="+(*pairs)[key])
	}
	return values
}

func (k *keyValues) Type() string { return "key=value" }
