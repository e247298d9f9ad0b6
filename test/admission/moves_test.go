package admission_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// movers is the group of those who may say what an extension comes after.
const movers = "extension-movers"

// moved is an extension that says that it comes after an operator of classic OLM.
func moved(name string) *ocv1.ClusterExtension {
	made := extension(name, installer)
	made.Annotations = map[string]string{ocv1.MigratedFromSubscriptionAnnotation: namespace + "/argocd"}
	return made
}

// testMoves has an editor, who may change all but what `kubectl extension migrate` believes, and somebody who may
// migrate.
func testMoves(t *testing.T) {
	const (
		recordOfMove = `{"metadata": {"annotations": {"olm.operatorframework.io/migration-record": "{}"}}}`
		backup       = `{"metadata": {"annotations": {"olm.operatorframework.io/migration-subscription-backup": "{}"}}}`
		noRecord     = `{"metadata": {"annotations": {"olm.operatorframework.io/migration-record": null}}}`
		note         = `{"metadata": {"annotations": {"team": "green"}}}`
	)
	editor, mover := as(t, "moving-editor", authors), as(t, "moving-mover", authors, movers)
	for _, who := range []string{"moving-editor", "moving-mover"} {
		mayImpersonate(t, user(who), installer)
	}
	refused := func(t *testing.T, err error, name string) {
		t.Helper()
		want := `user "moving-editor" cannot migrate resource "clusterextensions" in API group "olm.operatorframework.io" with the name "` + name + `"`
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), movesPolicy) {
			t.Errorf("got %v, want a refusal", err)
		}
	}
	t.Run("create", func(t *testing.T) {
		t.Parallel()
		name := nameFrom(t)
		refused(t, editor.Create(t.Context(), moved(name)), name)
		made := moved(name)
		checkAllowed(t, mover.Create(t.Context(), made))
		t.Cleanup(func() { remove(t, made) })
		checkAllowed(t, change(t, mover, name, recordOfMove))
		checkAllowed(t, change(t, editor, name, pause))
		checkAllowed(t, change(t, editor, name, note))
		refused(t, change(t, editor, name, noRecord), name)
		checkAllowed(t, change(t, mover, name, noRecord))
	})
	t.Run("an extension that is there", func(t *testing.T) {
		t.Parallel()
		made := existing(t, nameFrom(t))
		checkAllowed(t, change(t, editor, made.Name, note))
		refused(t, change(t, editor, made.Name, recordOfMove), made.Name)
		refused(t, change(t, editor, made.Name, backup), made.Name)
		checkAllowed(t, change(t, mover, made.Name, backup))
	})
}
