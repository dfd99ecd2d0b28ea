package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// EnvPrefix is the prefix of the environment variables that the program reads.
const EnvPrefix = "MESH_AGENT_"

// SettingsHelp is the help about the sources of settings.
const SettingsHelp = `Settings come from flags, environment variables and a file. A flag has priority over its variable, and a variable over the file.
The name of a variable follows from the flag: ` + EnvPrefix + `CLUSTER_NAME for --cluster-name. The file (--config, or ` + EnvPrefix + `CONFIG)
is YAML. Its keys are the names of the flags:

  cluster-name: east
  cluster-id: 1
  clustermesh-sync-timeout: 30s
  kvstore-opt:
    etcd.qps: 100

A setting with several sources takes its value from one of them; values are not merged. An invalid setting ends the command
before anything starts.`

// Settings are the flags of run, from all sources of their values. Other commands show some of these flags, and take
// the values of all.
type Settings struct {
	flags    *pflag.FlagSet
	values   Flags             // the flags set its fields
	file     string            // the value of --config
	from     map[string]string // the source of a flag's value, by flag; none for a default
	mistakes mistakes          // in the loaded values
}

// NewSettings returns the settings with their defaults.
func NewSettings() *Settings {
	s := &Settings{flags: pflag.NewFlagSet("settings", pflag.ContinueOnError), values: Default(), from: make(map[string]string)}
	s.values.bind(s.flags)
	return s
}

// Register adds --config and the flags with these names to a command; without names, all flags.
func (s *Settings) Register(to *pflag.FlagSet, names ...string) {
	s.flags.VisitAll(func(f *pflag.Flag) {
		if len(names) == 0 || slices.Contains(names, f.Name) {
			to.AddFlag(f)
		}
	})
	to.StringVar(&s.file, "config", "", "YAML file with settings; flags and environment variables have priority")
}

// Has reports whether a flag is a setting.
func (s *Settings) Has(flag string) bool { return s.flags.Lookup(flag) != nil || flag == "config" }

// Load sets flags that are not on the command line from the environment and the file, and returns the configuration.
// The error is a usage error, on one line. It does not have the mistakes that Check returns: a command may need a part of
// the configuration alone.
func (s *Settings) Load(getenv func(string) string) (Config, error) {
	s.flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			s.from[f.Name] = "--" + f.Name
		}
	})
	err := SetFromEnvironment(s.flags, getenv, func(f *pflag.Flag) bool { return s.from[f.Name] != "" }, s.from)
	if s.file != "" {
		s.from["config"] = "--config"
	} else if s.file = getenv(Variable("config")); s.file != "" {
		s.from["config"] = Variable("config")
	}
	if s.file != "" {
		err = errors.Join(err, s.readFile())
	}
	if err != nil {
		return Config{}, exit.Usagef("%s", printer.OneLine(err))
	}
	return s.typed(), nil
}

// Set sets the value of a flag.
func (s *Settings) Set(flag, value string) error { return s.flags.Set(flag, value) }

// typed parses the flags' values.
func (s *Settings) typed() (c Config) {
	c, s.mistakes = s.values.typed()
	return c
}

// Check returns a usage error with the mistakes in the values of these flags, and where the values come from. Without
// flags, it has the mistakes in all.
func (s *Settings) Check(flags ...string) error {
	wrong := s.mistakes
	if len(flags) > 0 {
		wrong = wrong.of(flags...)
	}
	if len(wrong) == 0 {
		return nil
	}
	return exit.Usagef("%s", printer.OneLine(errors.New(printer.Join(wrong, "; ", s.explain))))
}

// OwnFlags are the flags of the own cluster's name and ID.
func OwnFlags() []string { return []string{"cluster-name", "cluster-id", "max-connected-clusters"} }

// explain returns the text of a mistake with the sources of its values; it names the flags when all have their
// defaults.
func (s *Settings) explain(m *mistake) string {
	var places []string
	for _, flag := range m.flags {
		if s.from[flag] != "" {
			places = append(places, s.from[flag])
		}
	}
	if len(places) == 0 {
		return m.Error()
	}
	return fmt.Sprintf("%s: %v", strings.Join(places, " and "), m.err)
}

// Variable returns the environment variable of a flag.
func Variable(flag string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// SetFromEnvironment sets flags from their variables, except those that skip selects, and stores the names of the
// variables in from. An empty variable counts as unset.
func SetFromEnvironment(flags *pflag.FlagSet, getenv func(string) string, skip func(*pflag.Flag) bool, from map[string]string) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		name := Variable(f.Name)
		value := getenv(name)
		if value == "" || skip(f) {
			return
		}
		from[f.Name] = name
		if err := setFlag(f, value); err != nil {
			errs = append(errs, fmt.Errorf("%s=%q: %w", name, refused(f, value), err))
		}
	})
	return errors.Join(errs...)
}

// refused returns what a message may show of a value that a flag does not accept. The value of
// --kvstore-opt is left out: it cannot be parsed, so it is unknown which options are secret.
func refused(f *pflag.Flag, value string) string {
	if f.Name == KVStoreFlag {
		return clientfile.LeftOut
	}
	return clientfile.Redact(value)
}

// RefusedFlag returns the error for an invalid flag of the command line, without parts that may be secret.
func RefusedFlag(_ *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f := invalid.GetFlag()
		err = fmt.Errorf("--%s=%q: %w", f.Name, refused(f, invalid.GetValue()), wanted(f, invalid.Unwrap()))
	}
	return exit.UsageError{Err: err}
}

// setFlag sets a flag's value without marking the flag as changed.
func setFlag(f *pflag.Flag, text string) error {
	if err := f.Value.Set(text); err != nil {
		return wanted(f, err)
	}
	return nil
}

// wanted returns an error with the values that a flag accepts.
func wanted(f *pflag.Flag, err error) error {
	switch f.Value.Type() {
	case "uint32":
		return errors.New("want a whole number, not negative")
	case "int":
		return errors.New("want a whole number")
	case "bool":
		return errors.New("want true or false")
	case "duration":
		return errors.New("want a duration with its unit, such as 30s or 5m")
	default:
		return errors.New(clientfile.Redact(err.Error()))
	}
}

// UnknownVariables returns the variables with our prefix that no command reads.
func UnknownVariables(environ []string, root *cobra.Command) []string {
	known := make(map[string]bool)
	VisitFlags(root, func(f *pflag.Flag) { known[Variable(f.Name)] = true })
	var unknown []string
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, EnvPrefix) && !known[name] && !serviceLink(name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// FlagNames returns the names of all flags of a program. None of them takes a secret.
func FlagNames(root *cobra.Command) map[string]bool {
	names := make(map[string]bool)
	VisitFlags(root, func(f *pflag.Flag) { names[f.Name] = true })
	return names
}

// VisitFlags visits the flags of a command and of all its subcommands.
func VisitFlags(cmd *cobra.Command, visit func(*pflag.Flag)) {
	cmd.Flags().VisitAll(visit)
	cmd.PersistentFlags().VisitAll(visit)
	for _, sub := range cmd.Commands() {
		VisitFlags(sub, visit)
	}
}

// serviceLink reports whether Kubernetes sets a variable in every container because of a Service with the name
// mesh-agent.
func serviceLink(name string) bool {
	rest := strings.TrimPrefix(name, EnvPrefix)
	return rest == "PORT" || strings.HasPrefix(rest, "PORT_") || strings.HasPrefix(rest, "SERVICE_")
}
