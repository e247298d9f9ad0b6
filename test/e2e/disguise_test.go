package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/faultproxy"
)

// TestDisguisedCatalog has somebody who may edit one catalog give it the name label of
// another, with a higher priority and with the same. The correction of the label is
// held meanwhile, as if the controller were as slow as can be. Who selects the other
// by name draws from that, and from no other, at every moment.
//
//nolint:paralleltest // it stops the controller of all tests
func TestDisguisedCatalog(t *testing.T) {
	const victim, good, evil = "disguise-victim", "disguise-good", "disguise-evil"
	offered := operators(victim, "1.0.0", "6.6.6")
	for _, operator := range offered {
		pushBundle(t, operator, operator.Bundle())
	}
	publishCatalog(t, good, testkit.Catalog(registryHost, offered[0]))
	publishCatalog(t, evil, testkit.Catalog(registryHost, offered...))
	proxy, err := faultproxy.Start(theSuite.Cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	replaceControllerBehind(t, proxy)
	serving(t, good)
	serving(t, evil)

	// Of the name label alone: status is another path.
	const correction = "correction"
	pause := faultproxy.NewPause(map[string]int{correction: 1}, func(write faultproxy.Write) string {
		if write.Method == http.MethodPatch && strings.HasSuffix(write.Path, "/clustercatalogs/"+evil) {
			return correction
		}
		return ""
	})
	proxy.Use(pause.Wrap)
	states := watchExtension(t, victim)
	mallory := editorOf(t, evil)
	disguise := func(priority int) {
		patch := fmt.Sprintf(`{"metadata": {"labels": {%q: %q}}, "spec": {"priority": %d}}`, ocv1.MetadataNameLabel, good, priority)
		target := &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: evil}}
		if err := mallory.Patch(t.Context(), target, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	byName := func(extension *ocv1.ClusterExtension) {
		extension.Spec.Source.Catalog.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{ocv1.MetadataNameLabel: good}}
	}

	disguise(1000)
	eventually(t, "the correction", func(context.Context) error {
		if _, held := pause.Held(correction); !held {
			return errors.New("is not tried")
		}
		return nil
	})
	extend(t, victim, byName)
	installed(t, victim, "1.0.0")
	disguise(0)
	update(t, victim, version(">=1.0.0")) // a pass that knows of it
	installed(t, victim, "1.0.0")
	if got := command(t, theSuite.Cluster.Kubeconfig(), "explain", victim); !strings.Contains(got, "from catalog \""+good+"\"\n") || strings.Contains(got, evil) {
		t.Errorf("explain says\n%s", got)
	}
	wearing := &ocv1.ClusterCatalog{}
	exists(t, wearing, "", evil)
	if got := wearing.Labels[ocv1.MetadataNameLabel]; got != good {
		t.Fatalf("the label was corrected to %q, so that nothing is shown", got)
	}

	pause.Resume(correction)
	eventually(t, "the label", func(ctx context.Context) error {
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: evil}, wearing); err != nil {
			return err
		}
		if got := wearing.Labels[ocv1.MetadataNameLabel]; got != evil {
			return fmt.Errorf("says %q", got)
		}
		return nil
	})
	checkNeverDisguised(t, states, victim, evil)
}

// checkNeverDisguised looks at every state that the extension had up to now: none
// draws from the catalog, or hesitates because of it.
func checkNeverDisguised(t *testing.T, states watch.Interface, victim, evil string) {
	t.Helper()
	last := &ocv1.ClusterExtension{}
	exists(t, last, "", victim)
	for seen := ""; seen != last.ResourceVersion; {
		var event watch.Event
		select {
		case event = <-states.ResultChan():
		case <-time.After(patience):
			t.Fatal("the watch does not come to the last state")
		}
		extension, is := event.Object.(*ocv1.ClusterExtension)
		if !is {
			t.Fatalf("the watch ended with %+v", event)
		}
		seen = extension.ResourceVersion
		if extension.Status.Install != nil && extension.Status.Install.Bundle.Version != "1.0.0" {
			t.Errorf("installed is %+v", extension.Status.Install.Bundle)
		}
		for _, condition := range extension.Status.Conditions {
			if strings.Contains(condition.Message, "multiple catalogs") || strings.Contains(condition.Message, evil) {
				t.Errorf("%s is %s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
			}
		}
	}
}

// watchExtension keeps every state of an extension from now on.
func watchExtension(t *testing.T, name string) watch.Interface {
	t.Helper()
	watcher, err := client.NewWithWatch(theSuite.Cluster.RESTConfig(), client.Options{Scheme: theSuite.Admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	states, err := watcher.Watch(t.Context(), &ocv1.ClusterExtensionList{}, client.MatchingFields{"metadata.name": name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(states.Stop)
	return states
}

// editorOf is somebody who may edit one catalog and nothing else.
func editorOf(t *testing.T, catalog string) client.Client {
	t.Helper()
	const name = "mallory"
	user(t, name, rbacv1.PolicyRule{
		APIGroups: []string{ocv1.GroupVersion.Group}, Resources: []string{"clustercatalogs"}, ResourceNames: []string{catalog},
		Verbs: []string{"get", "patch"},
	})
	config, err := theSuite.Cluster.ConfigFor(name)
	if err != nil {
		t.Fatal(err)
	}
	editor, err := client.New(config, client.Options{Scheme: theSuite.Admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the right to edit "+catalog, func(ctx context.Context) error {
		return editor.Get(ctx, client.ObjectKey{Name: catalog}, &ocv1.ClusterCatalog{})
	})
	return editor
}
