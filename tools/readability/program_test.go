package readability

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mesh-agent/mesh-agent/internal/cli"
	"github.com/mesh-agent/mesh-agent/simtest/sim/command"
)

// template is a part of a text that Prometheus fills in.
var template = regexp.MustCompile(`\{\{.*?\}\}`)

// codeLine is an indented line, which has no prose.
var codeLine = regexp.MustCompile(`(?m)^  .*$`)

// helps are the texts of the help of a command and those below it, by command.
func helps(cmd *cobra.Command, all map[string]string) {
	text := cmd.Short + "\n\n" + codeLine.ReplaceAllString(cmd.Long, "")
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		text += "\n\n" + strings.NewReplacer("; ", ".\n\n", ": ", ":\n\n").Replace(f.Usage)
	})
	all[cmd.CommandPath()] = text
	for _, sub := range cmd.Commands() {
		helps(sub, all)
	}
}

// TestHelpReadsWell: the help of each command has the words of the documents.
func TestHelpReadsWell(t *testing.T) {
	t.Parallel()
	v, phrases := readVocabulary(t), readPhrases(t)
	all := make(map[string]string)
	for _, program := range []*cobra.Command{cli.New("test"), command.New()} {
		helps(program, all)
	}
	for of, text := range all {
		check(t, "the help of "+of, measure(text, v, phrases))
	}
}

// literals are the literal parts of a text, one after the other; empty for other expressions.
func literals(t *testing.T, expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
	case *ast.BinaryExpr:
		return literals(t, e.X) + literals(t, e.Y)
	}
	return ""
}

// logged are the messages that a file logs, or reports of its health.
func logged(t *testing.T, file *ast.File) (all []string) {
	t.Helper()
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"Debug", "Info", "Warn", "Error", "Log", "report", "Degraded"}, method.Sel.Name) {
			return true
		}
		for _, arg := range call.Args[:min(3, len(call.Args))] {
			if text := literals(t, arg); text != "" {
				all = append(all, text)
				break
			}
		}
		return true
	})
	return all
}

// described are the descriptions in a file: of the API's fields (their tag doc), and of routes, alerts and
// metrics (fields of these names).
func described(t *testing.T, file *ast.File) (all []string) {
	t.Helper()
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if n.Tag != nil {
				if text := reflect.StructTag(strings.Trim(n.Tag.Value, "`")).Get("doc"); text != "" {
					all = append(all, text)
				}
			}
		case *ast.KeyValueExpr:
			key, ok := n.Key.(*ast.Ident)
			if ok && slices.Contains([]string{"summary", "Summary", "Description", "Help"}, key.Name) {
				if text := template.ReplaceAllString(literals(t, n.Value), "value"); text != "" {
					all = append(all, text)
				}
			}
		}
		return true
	})
	return all
}

// ofPrograms are the texts that take finds in the files of the programs.
func ofPrograms(t *testing.T, take func(t *testing.T, file *ast.File) []string) string {
	t.Helper()
	var all []string
	for _, dir := range []string{"internal", "pkg", "cmd", "simtest", "tools"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err == nil {
				all = append(all, take(t, file)...)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(all) < 50 {
		t.Fatalf("only %d texts were found", len(all))
	}
	slices.Sort(all)
	return strings.Join(all, ".\n\n")
}

// TestLogReadsWell: the messages of the log have the words of the documents.
func TestLogReadsWell(t *testing.T) {
	t.Parallel()
	check(t, "the log", measure(ofPrograms(t, logged), readVocabulary(t), readPhrases(t)))
}

// TestDescriptionsReadWell: descriptions of the API, the metrics and the alerts obey the rules for documents.
func TestDescriptionsReadWell(t *testing.T) {
	t.Parallel()
	check(t, "the descriptions", measure(ofPrograms(t, described), readVocabulary(t), readPhrases(t)))
}
