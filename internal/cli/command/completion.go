package command

import (
	"bytes"
	"strings"

	"github.com/spf13/cobra"
)

// Parts of cobra's script for bash: a call of a function of the package bash-completion, and its replacement, which
// parses the line without the package if it is missing. The names of this program contain no spaces, so it is enough
// to split at spaces.
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

// completeWithoutPackage makes the script for bash work without the package bash-completion.
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
