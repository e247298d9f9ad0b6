package inspect

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/usage"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/preview"
)

func TestRightsThatPoliciesTake(t *testing.T) {
	t.Parallel()
	item := func(kind schema.GroupKind, resource, namespace, name string) object.Item {
		return object.Item{
			Key:     object.Key{GroupKind: kind, Namespace: namespace, Name: name},
			Mapping: &meta.RESTMapping{Resource: schema.GroupVersionResource{Group: kind.Group, Version: "v1", Resource: resource}},
		}
	}
	items := []object.Item{
		item(deploymentKind, "deployments", "ns", "operator"),
		item(deploymentKind, "deployments", "ns", "gone"),
		item(schema.GroupKind{Kind: "ConfigMap"}, "configmaps", "ns", "foreign"),
		item(schema.GroupKind{Kind: "Namespace"}, "namespaces", "", "made"),
	}
	defined := func(name string) usage.Definition {
		return usage.Definition{Name: name + ".test", Resource: schema.GroupVersionResource{Group: "test", Version: "v1", Resource: name}}
	}
	shared, unserved := defined("shareds"), defined("unserveds")
	shared.Shared, unserved.Err = true, errors.New("it is not served")
	going := lettingGo{
		items:       items,
		objects:     []preview.InstalledObject{{Key: items[0].Key}, {Key: items[2].Key, Foreign: true}, {Key: items[3].Key}},
		definitions: []usage.Definition{defined("things"), defined("nothings"), defined("uncounteds"), shared, unserved},
		uses:        []installation.Use{{Count: 1}, {}, {Err: errors.New("you may not")}, {Count: 1}, {Err: unserved.Err}},
	}
	const definitions = `Namespace:"" APIGroups:[apiextensions.k8s.io] Resources:[customresourcedefinitions] ResourceNames:[`
	const deployments = `Namespace:"ns" APIGroups:[apps] Resources:[deployments] ResourceNames:[`
	for policy, want := range map[controller.UninstallPolicy][]string{
		controller.UninstallDelete:           nil,
		controller.UninstallRefuseWhileInUse: nil,
		controller.UninstallKeep: {
			definitions + "things.test] Verbs:[get,patch]", definitions + "nothings.test] Verbs:[get,patch]",
			definitions + "uncounteds.test] Verbs:[get,patch]", definitions + "shareds.test] Verbs:[get,patch]",
			definitions + "unserveds.test] Verbs:[get,patch]",
		},
		controller.UninstallDeleteFirst: {
			`Namespace:"" APIGroups:[test] Resources:[things] Verbs:[delete,list]`,
			`Namespace:"" APIGroups:[test] Resources:[uncounteds] Verbs:[delete,list]`,
			deployments + "operator] Verbs:[delete,get]", deployments + "gone] Verbs:[get]",
		},
		controller.UninstallOrphan: {
			deployments + "operator] Verbs:[get,patch]", deployments + "gone] Verbs:[get]",
			`Namespace:"ns" APIGroups:[""] Resources:[configmaps] ResourceNames:[foreign] Verbs:[get]`,
			`Namespace:"made" APIGroups:[""] Resources:[namespaces] ResourceNames:[made] Verbs:[get,patch]`,
		},
	} {
		going.policy = policy
		var got []string
		for _, rule := range going.rights() {
			got = append(got, rule.Text())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", policy, diff)
		}
	}
}
