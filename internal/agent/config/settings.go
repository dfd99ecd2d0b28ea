package config

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/cilium/hive"
	"github.com/cilium/hive/cell"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
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
	flags *pflag.FlagSet
	file  string            // the value of --config
	from  map[string]string // the source of a flag's value, by flag; none for a default
}

// NewSettings returns the settings with their defaults.
func NewSettings() *Settings {
	s := &Settings{flags: pflag.NewFlagSet("settings", pflag.ContinueOnError), from: make(map[string]string)}
	Default().Flags(s.flags)
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

// Load sets flags that are not on the command line from the environment and the file. The error is a usage error, on
// one line.
func (s *Settings) Load(getenv func(string) string) (Config, error) {
	s.flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			s.from[f.Name] = "--" + f.Name
		}
	})
	err := SetFromEnvironment(s.flags, getenv, func(f *pflag.Flag) bool { return s.from[f.Name] != "" }, s.from)
	if s.file == "" {
		s.file, s.from["config"] = getenv(Variable("config")), Variable("config")
	} else {
		s.from["config"] = "--config"
	}
	if s.file != "" {
		err = errors.Join(err, s.readFile())
	}
	if err != nil {
		return Config{}, exit.Usagef("%s", printer.OneLine(err))
	}
	return s.decode()
}

// Set sets the value of a flag.
func (s *Settings) Set(flag, value string) error { return s.flags.Set(flag, value) }

// decode returns the flags' values as a Config.
func (s *Settings) decode() (c Config, err error) {
	h := hive.New(cell.Config(Default()), cell.Invoke(func(decoded Config) { c = decoded }))
	s.Give(h)
	return c, h.Populate(slog.New(slog.DiscardHandler))
}

// Give sets the values in a hive. They replace the values that the hive would find itself.
func (s *Settings) Give(to *hive.Hive) {
	s.flags.VisitAll(func(f *pflag.Flag) { to.Viper().Set(f.Name, f.Value.String()) })
}

// Validate returns the mistakes in the values, with the sources of these values.
func (s *Settings) Validate(c Config) error {
	var texts []string
	for _, one := range c.mistakes() {
		texts = append(texts, s.explain(one))
	}
	if len(texts) == 0 {
		return nil
	}
	return exit.Usagef("%s", printer.OneLine(errors.New(strings.Join(texts, "; "))))
}

// Mistake returns a usage error: a mistake in the values of flags, with their sources.
func (s *Settings) Mistake(err error, flags ...string) error {
	return exit.Usagef("%s", printer.OneLine(errors.New(s.explain(&settingError{Flags: flags, Err: err}))))
}

// ValidateOwn validates the settings of the own cluster.
func (s *Settings) ValidateOwn(c Config) error {
	err := wire.ValidateMaxConnectedClusters(c.MaxConnectedClusters)
	flags := []string{"max-connected-clusters"}
	if err == nil {
		err, flags = c.Own().Validate(), []string{"cluster-name", "cluster-id"}
	}
	if err == nil {
		return nil
	}
	return s.Mistake(err, flags...)
}

// explain returns the text of a mistake with the sources of its values; it names the flags when all have their
// defaults.
func (s *Settings) explain(err error) string {
	mistake, ok := errors.AsType[*settingError](err)
	if !ok {
		return err.Error()
	}
	var places []string
	for _, flag := range mistake.Flags {
		if s.from[flag] != "" {
			places = append(places, s.from[flag])
		}
	}
	if len(places) == 0 {
		return err.Error()
	}
	return fmt.Sprintf("%s: %v", strings.Join(places, " and "), mistake.Err)
}

// settingError is a mistake in the values of flags, from any source.
type settingError struct {
	Flags []string
	Err   error
}

// Error implements error: the text names the flags.
func (e *settingError) Error() string {
	return fmt.Sprintf("--%s: %v", strings.Join(e.Flags, " and --"), e.Err)
}

func (e *settingError) Unwrap() error { return e.Err }

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
