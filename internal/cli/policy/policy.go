// Package policy has the commands about ImagePolicies.
package policy

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/policyfile"
)

// NewCommand returns them.
func NewCommand() *cobra.Command {
	command := &cobra.Command{
		Use:     "policy",
		Short:   "Check ImagePolicies",
		Example: `  kubectl extension policy check policies.yaml`,
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newCheckCommand())
	return command
}

func newCheckCommand() *cobra.Command {
	output := cli.NewOutput(cli.Text, cli.JSON, cli.YAML)
	command := &cobra.Command{
		Use:   "check FILE...",
		Short: "List every problem of ImagePolicies, without a cluster",
		Long: `List every problem of the ImagePolicies of a file, one per line, sorted. Several files, which
may be - for standard input, are checked as one.

An error is what the API server would refuse, and what makes that an authority accepts nothing:
an expression that is none, a key or a certificate that cannot be read. A warning is what works,
but maybe not as you think: an expression that is found in other names too, a prefix that two
policies have. A note is what is fine if it is meant.

Secrets are checked as far as they are in the files. Whether an image would be accepted says
"kubectl extension verify IMAGE --policy FILE".`,
		Example: `  kubectl extension policy check policies.yaml
  kubectl extension policy check policies.yaml secrets.yaml -o json
  kubectl get imagepolicies -o yaml | kubectl extension policy check -`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			file, err := cli.ReadPolicies(command, args)
			if err != nil {
				return err
			}
			severity := func(p policyfile.Problem) policyfile.Severity { return p.Severity }
			return cli.PrintProblems(command, output, file.Check(time.Now()), severity)
		},
	}
	output.Bind(command, "o", "Format of the list.")
	return command
}
