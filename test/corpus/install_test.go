package corpus_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// oneCommand is how many packages are installed with one command each.
const oneCommand = 10

// TestInstallWithOneCommand has a catalog, and operators that serve when the commands end. They
// are of the first packages of the corpus that bring roles of their own, at their lowest
// version that can be installed.
func TestInstallWithOneCommand(t *testing.T) {
	t.Parallel()
	var chosen []family
	for _, family := range readCorpus(t) {
		if installable := family.installable(); len(chosen) < oneCommand && len(installable) > 0 && hasRoles(installable[0]) {
			chosen = append(chosen, installable[:1])
		}
	}
	s := startSuite(t)
	s.makeForeignKinds(t)
	s.publish(t, chosen)
	s.startController(t)
	together(t, "install", chosen, func(t *testing.T, family family) {
		wanted := family[0]
		args := []string{"install", wanted.pkg, "--version", wanted.version, "--apply", "--kubeconfig", s.Cluster.Kubeconfig()}
		if wanted.watch != "" {
			args = append(args, "--watch-namespace", wanted.watch)
		}
		output, err := s.LocalOutput(t.Context(), args...)
		if want := " is installed, and ready\n"; err != nil || !strings.HasSuffix(output, want) {
			t.Errorf("%v\n%s", err, output)
		}
		s.installed(t, wanted)
	})
}

func hasRoles(r revision) bool {
	for _, object := range r.objects {
		if object.GroupVersionKind().Group == rbacv1.GroupName {
			return true
		}
	}
	return false
}
