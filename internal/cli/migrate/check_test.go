package migrate

import (
	"bytes"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterextensions/operator-controller/internal/classic"
	"github.com/clusterextensions/operator-controller/internal/migration"
)

// Whoever may edit a Subscription writes what they like for a package, and an administrator has it on the screen.
func TestHostilePackages(t *testing.T) {
	t.Parallel()
	op := &classic.Operator{Name: types.NamespacedName{Namespace: "team", Name: "sample"}, Subscription: &operatorsv1alpha1.Subscription{
		Spec: &operatorsv1alpha1.SubscriptionSpec{Package: "a\x1b[2J\nteam/other\tb\u202e" + strings.Repeat("x", 5000)},
	}}
	var out bytes.Buffer
	checked := migration.Checked{Operator: op, Verdict: classic.Verdict{State: classic.Ineligible}}
	if err := printResult(&out, migration.Result{Operators: []migration.Checked{checked}}, true); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.ContainsAny(text, "\x1b\u202e\t") || strings.Count(text, "\n") != 2 || len(text) > 1000 {
		t.Errorf("printed is %.300q", text)
	}
}
