package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/cli/program"
)

// The version is printed by a flag as it is by a command.
func TestVersion(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"--version", "version"} {
		var out bytes.Buffer
		command := newCommand()
		command.SetOut(&out)
		command.SetArgs([]string{arg})
		if err := command.ExecuteContext(t.Context()); err != nil || out.String() != currentVersion()+"\n" || out.String() == "unknown\n" {
			t.Errorf("%s prints %q, %v", arg, &out, err)
		}
	}
}

// A command line that makes no sense exits with 2 and says where to find help. Flags are
// named as they are given.
func TestUsage(t *testing.T) {
	t.Parallel()
	const help = "\nTry 'operator-controller --help'."
	for line, want := range map[string]string{
		"--nonsense":                "unknown flag: --nonsense" + help,
		"nonsense":                  `unknown command "nonsense"`,
		"catalog check x":           ": it is kubectl extension catalog" + help,
		"version --nonsense":        "\nTry 'operator-controller version --help'.",
		"version now":               "\nTry 'operator-controller version --help'.",
		"--tls-cert cert.pem":       "--tls-cert and --tls-key must be given together" + help,
		"--tls-profile strict":      `--tls-profile: "strict" is not known; there are old, intermediate, modern, custom` + help,
		"--feature-gates On":        `invalid argument "On" for "--feature-gates" flag: malformed pair, expect string=bool` + help,
		"--feature-gates A=yes":     `invalid argument "A=yes" for "--feature-gates" flag: invalid value of A: yes`,
		"--workers 0":               "--workers must be at least 1, not 0" + help,
		"--global-pull-secret name": `--global-pull-secret must be <namespace>/<name>, not "name"` + help,
	} {
		command := newCommand()
		command.SetArgs(strings.Fields(line))
		err := command.ExecuteContext(t.Context())
		if program.Code(err) != program.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %s", line, err, want)
		}
	}
}
