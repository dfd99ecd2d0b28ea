package main

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

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// envPrefix begins the environment variables that are read.
const envPrefix = "MESH_AGENT_"

// settingsHelp says where settings come from.
const settingsHelp = `Settings come from flags, environment variables and a file; a flag wins over its variable, a variable over the file.
A variable is called as its flag: ` + envPrefix + `CLUSTER_NAME for --cluster-name. The file (--config, or ` + envPrefix + `CONFIG)
is YAML, its keys are the names of the flags:

  cluster-name: east
  cluster-id: 1
  clustermesh-sync-timeout: 30s
  kvstore-opt:
    etcd.qps: 100

What is set in several places is taken from one of them, never mixed. A mistake in any of them ends the command
before anything starts.`

// settings are the flags of run, wherever their values come from. Other
// commands show some of them, and take the values of all.
type settings struct {
	flags *pflag.FlagSet
	file  string            // --config
	from  map[string]string // the place of a flag's value, by flag; none for a default
}

func newSettings() *settings {
	s := &settings{flags: pflag.NewFlagSet("settings", pflag.ContinueOnError), from: make(map[string]string)}
	defaultConfig().Flags(s.flags)
	return s
}

// register adds --config and the flags of these names to a command, all of them
// when none is named.
func (s *settings) register(to *pflag.FlagSet, names ...string) {
	s.flags.VisitAll(func(f *pflag.Flag) {
		if len(names) == 0 || slices.Contains(names, f.Name) {
			to.AddFlag(f)
		}
	})
	to.StringVar(&s.file, "config", "", "YAML file with settings; flags and environment variables win over it")
}

// load gives the flags that the command line did not set their values from the
// environment and the file. The error is a usage error, on one line.
func (s *settings) load(getenv func(string) string) (Config, error) {
	s.flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			s.from[f.Name] = "--" + f.Name
		}
	})
	err := setFromEnvironment(s.flags, getenv, func(f *pflag.Flag) bool { return s.from[f.Name] != "" }, s.from)
	if s.file == "" {
		s.file, s.from["config"] = getenv(variable("config")), variable("config")
	} else {
		s.from["config"] = "--config"
	}
	if s.file != "" {
		err = errors.Join(err, s.readFile())
	}
	if err != nil {
		return Config{}, usagef("%s", oneLine(err))
	}
	return s.decode()
}

// decode reads the flags' values into a Config.
func (s *settings) decode() (c Config, err error) {
	h := hive.New(cell.Config(defaultConfig()), cell.Invoke(func(decoded Config) { c = decoded }))
	s.give(h)
	return c, h.Populate(slog.New(slog.DiscardHandler))
}

// give makes a hive take the values, whatever it would find by itself.
func (s *settings) give(to *hive.Hive) {
	s.flags.VisitAll(func(f *pflag.Flag) { to.Viper().Set(f.Name, f.Value.String()) })
}

// validate finds what is wrong with the values, and says where they came from.
func (s *settings) validate(c Config) error {
	err := c.Validate()
	if err == nil {
		return nil
	}
	var texts []string
	for _, one := range unjoin(err) {
		texts = append(texts, s.explain(one))
	}
	return usagef("%s", oneLine(errors.New(strings.Join(texts, "; "))))
}

// explain names the places of the values that a mistake is about; those of the
// flags when all have their defaults.
func (s *settings) explain(err error) string {
	mistake, ok := errors.AsType[*settingError](err)
	if !ok {
		return err.Error()
	}
	var places []string
	for _, flag := range mistake.flags {
		if s.from[flag] != "" {
			places = append(places, s.from[flag])
		}
	}
	if len(places) == 0 {
		return err.Error()
	}
	return fmt.Sprintf("%s: %v", strings.Join(places, " and "), mistake.err)
}

// settingError is a mistake in the values of flags, wherever they came from.
type settingError struct {
	flags []string
	err   error
}

func (e *settingError) Error() string {
	return fmt.Sprintf("--%s: %v", strings.Join(e.flags, " and --"), e.err)
}

func (e *settingError) Unwrap() error { return e.err }

// unjoin takes apart what [errors.Join] has put together.
func unjoin(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// oneLine puts a text of several lines on one.
func oneLine(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "; ")
}

// variable is the environment variable of a flag.
func variable(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// setFromEnvironment sets flags from their variables, except those to skip, and
// notes in from which. An empty variable is as good as none.
func setFromEnvironment(flags *pflag.FlagSet, getenv func(string) string, skip func(*pflag.Flag) bool, from map[string]string) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		name := variable(f.Name)
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

// refused is what a message may show of a value that a flag does not take: which
// options a text has that is none cannot be told, nor which of them are secret.
func refused(f *pflag.Flag, value string) string {
	if f.Name == kvstoreOpt {
		return clientfile.LeftOut
	}
	return clientfile.Redact(value)
}

// refusedFlag is the error for a flag of the command line, without what may be a
// secret.
func refusedFlag(_ *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f := invalid.GetFlag()
		err = fmt.Errorf("--%s=%q: %w", f.Name, refused(f, invalid.GetValue()), wanted(f, invalid.Unwrap()))
	}
	return usageError{err}
}

// setFlag sets a flag's value without making it a flag that was given.
func setFlag(f *pflag.Flag, text string) error {
	if err := f.Value.Set(text); err != nil {
		return wanted(f, err)
	}
	return nil
}

// wanted says what a flag takes instead of what it has refused.
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

// strangers returns the variables with our prefix that no command reads.
func strangers(environ []string, root *cobra.Command) []string {
	known := make(map[string]bool)
	visitFlags(root, func(f *pflag.Flag) { known[variable(f.Name)] = true })
	var unknown []string
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, envPrefix) && !known[name] && !serviceLink(name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// visitFlags visits the flags of a command and of all that are below it.
func visitFlags(cmd *cobra.Command, visit func(*pflag.Flag)) {
	cmd.Flags().VisitAll(visit)
	cmd.PersistentFlags().VisitAll(visit)
	for _, sub := range cmd.Commands() {
		visitFlags(sub, visit)
	}
}

// serviceLink recognises what Kubernetes sets in every container beside a
// service of the name mesh-agent.
func serviceLink(name string) bool {
	rest := strings.TrimPrefix(name, envPrefix)
	return rest == "PORT" || strings.HasPrefix(rest, "PORT_") || strings.HasPrefix(rest, "SERVICE_")
}
