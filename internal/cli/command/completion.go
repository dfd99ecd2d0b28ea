package command

import (
	"bytes"
	"strings"

	"github.com/spf13/cobra"
)

// Of cobra's script for bash: what needs a function of the package bash-completion, and the same with what bash itself
// says of the line. Its names contain no spaces, so that words between spaces do.
const (
	wordsOfPackage = `    _get_comp_words_by_ref "$@" cur prev words cword
`
	wordsOfLine = `    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    local line=${COMP_LINE:0:COMP_POINT}
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    cword=$((${#words[@]} - 1))
    cur=${words[cword]}
    prev=${words[cword > 0 ? cword - 1 : 0]}
`
)

// completeWithoutPackage makes the script for bash work where the package bash-completion is not installed.
func completeWithoutPackage(completion *cobra.Command) {
	for _, shell := range completion.Commands() {
		if shell.Name() != "bash" {
			continue
		}
		shell.RunE = func(cmd *cobra.Command, _ []string) error {
			without, err := cmd.Flags().GetBool("no-descriptions")
			if err != nil {
				return err
			}
			var script bytes.Buffer
			if err := cmd.Root().GenBashCompletionV2(&script, !without); err != nil {
				return err
			}
			_, err = strings.NewReplacer(wordsOfPackage, wordsOfLine).WriteString(cmd.OutOrStdout(), script.String())
			return err
		}
		shell.Long = "Generate the completion of bash. To load it in this shell, and in each new one:\n\n" +
			"  source <(mesh-agent completion bash)\n  mesh-agent completion bash > /etc/bash_completion.d/mesh-agent\n\n" +
			"It needs no other package."
	}
}
