package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

const (
	extensionPath   = "/apis/olm.operatorframework.io/v1/clusterextensions/x"
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	rulesPath       = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
)

// installedExtension is x with parts of its metadata, spec and status; each begins with a comma
// if there is one.
func installedExtension(metadata, spec, status string) map[string]string {
	return map[string]string{extensionPath: fmt.Sprintf(`{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
		"metadata": {"name": "x", "uid": "1"%s}, "spec": {"namespace": "ns", "serviceAccount": {"name": "installer"},
		"source": {"sourceType": "Catalog", "catalog": {"packageName": "p", "upgradeConstraintPolicy": "SelfCertified"}}%s},
		"status": {"install": {"bundle": {"name": "p.v1.0.0", "version": "1.0.0"}}%s}}`, metadata, spec, status)}
}

// recordsPath is where release records are listed.
func recordsPath(namespace string) string { return "/api/v1/namespaces/" + namespace + "/secrets" }

const noSecrets = `{"apiVersion": "v1", "kind": "SecretList", "metadata": {}, "items": []}`

const ownedDefinition = `{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {}, "items": [{"metadata": {"name": "things.test",
"ownerReferences": [{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "name": "x", "uid": "1", "controller": true}]}}]}`

// with adds replies to others, by pairs of a path and a reply.
func with(replies map[string]string, more ...string) map[string]string {
	for i := 0; i < len(more); i += 2 {
		replies[more[i]] = more[i+1]
	}
	return replies
}

// What cannot be seen is not said to be nothing.
func TestPlanOfADeletionWithoutRights(t *testing.T) {
	t.Parallel()
	const unknown, inTheWay = "it is not known what would go and what would stay\n", "it is not known whether anything is in the way"
	const keeps = `, "uninstall": {"customResourceDefinitions": "Keep"}`
	for name, test := range map[string]struct {
		replies map[string]string
		args    []string
		text    string
		err     string
	}{
		"nothing is seen": {installedExtension("", "", ""), nil, unknown, ""},
		"a policy that refuses": {
			installedExtension("", `, "uninstall": {"customResourceDefinitions": "RefuseWhileInUse"}`, ""), nil, unknown, inTheWay,
		},
		"a definition that may not be kept": {installedExtension("", keeps, ""), nil, unknown, inTheWay},
		"definitions alone": {
			with(installedExtension("", "", ""), definitionsPath, ownedDefinition), nil,
			"as far as is known, 1 to delete, 0 to keep; there may be more\n", "",
		},
		"another namespace": {
			with(installedExtension("", "", ""), recordsPath("elsewhere"), noSecrets, definitionsPath, ownedDefinition),
			[]string{"--system-namespace", "elsewhere"},
			`status says that "p.v1.0.0" is installed, and there are no release records of it in namespace "elsewhere": --system-namespace has to be that of the controller`, "",
		},
		"the flag of the controller, by a finalizer": {
			installedExtension(`, "finalizers": ["olm.operatorframework.io/uninstall-policy"]`, "", ""), nil,
			`it is another one than "Delete", as the controller holds the extension`, "",
		},
		"the flag of the controller, by what it says": {
			installedExtension(`, "deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": ["f"]`, "",
				`, "conditions": [{"type": "Ready", "status": "False", "reason": "DeletionBlocked", "message": "there are things"}]`), nil,
			`it is another one than "Delete", as the controller holds the extension`, "",
		},
		"it is being deleted": {
			installedExtension(`, "deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": ["f"]`, "",
				`, "conditions": [{"type": "Ready", "status": "False", "reason": "Terminating", "message": "all waits"}]`), nil,
			"ClusterExtension \"x\" is being deleted since 2026-01-02T03:04:05Z; Ready is False by Terminating: all waits\n", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stdout, _, err := invoke(t, append([]string{"plan", "x", "--delete", "--kubeconfig", fewRights(t, test.replies)}, test.args...)...)
			if errorText(err) != test.err || !strings.Contains(stdout, test.text) {
				t.Errorf("err = %v, want %q; got\n%s\nwant in it %s", err, test.err, stdout, test.text)
			}
		})
	}
}

// The ServiceAccount need not be there, but what the policy does has to be allowed to it.
func TestPlanOfADeletionAsksForRights(t *testing.T) {
	t.Parallel()
	const missing = `ServiceAccount "installer" in namespace "ns" lacks a right that policy Keep takes: ` +
		`Namespace:"" APIGroups:[apiextensions.k8s.io] Resources:[customresourcedefinitions] ResourceNames:[things.test] Verbs:[get,patch]`
	const review = `{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "status": {"nonResourceRules": [], "resourceRules": [%s]}}`
	const all = `{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}`
	const definition = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.test"}, "spec": {}}`
	for name, test := range map[string]struct{ reply, text, err string }{
		"none":         {fmt.Sprintf(review, ""), missing, "1 obstacle in the way"},
		"all":          {fmt.Sprintf(review, all), "uninstall policy: Keep", ""},
		"not to be it": {"", "has the rights that this takes, as you may not act as it: ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replies := with(installedExtension("", `, "uninstall": {"customResourceDefinitions": "Keep"}`, ""),
				definitionsPath, ownedDefinition, definitionsPath+"/things.test", definition)
			if test.reply != "" {
				replies[rulesPath] = test.reply
			}
			stdout, _, err := invoke(t, "plan", "x", "--delete", "--kubeconfig", fewRights(t, replies))
			if errorText(err) != test.err || !strings.Contains(stdout, test.text) || strings.Contains(stdout, "does not exist") {
				t.Errorf("err = %v, want %q; got\n%s\nwant in it %s", err, test.err, stdout, test.text)
			}
		})
	}
}

// A rollback does not take records that are elsewhere for none.
func TestRollbackFromAnotherNamespace(t *testing.T) {
	t.Parallel()
	kubeconfig := fewRights(t, with(installedExtension("", "", ""), recordsPath("elsewhere"), noSecrets))
	_, _, err := invoke(t, "rollback", "x", "--system-namespace", "elsewhere", "--kubeconfig", kubeconfig)
	const want = `ClusterExtension "x": status says that "p.v1.0.0" is installed, and there are no release records of it in namespace "elsewhere": `
	if !strings.HasPrefix(errorText(err), want) {
		t.Errorf("err = %v, want %s", err, want)
	}
}

// kindsOfBundles are what an API server says of the kinds that bundles have.
func kindsOfBundles() map[string]string {
	replies := map[string]string{
		"/api":  `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [`,
	}
	list := func(path, version string, resources ...string) {
		var items []string
		for _, resource := range resources {
			kind, plural, _ := strings.Cut(resource, "=")
			items = append(items, fmt.Sprintf(`{"name": %q, "singularName": "", "namespaced": %t, "kind": %q, "verbs": ["get"]}`, plural, !strings.HasPrefix(kind, "C") || kind == "ConfigMap", kind))
		}
		replies[path] = fmt.Sprintf(`{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": %q, "resources": [%s]}`, version, strings.Join(items, ","))
	}
	list("/api/v1", "v1", "ConfigMap=configmaps", "Service=services", "ServiceAccount=serviceaccounts")
	var groups []string
	for group, resources := range map[string][]string{
		"apps":                      {"Deployment=deployments"},
		"rbac.authorization.k8s.io": {"Role=roles", "RoleBinding=rolebindings", "ClusterRole=clusterroles", "ClusterRoleBinding=clusterrolebindings"},
		"apiextensions.k8s.io":      {"CustomResourceDefinition=customresourcedefinitions"},
	} {
		version := fmt.Sprintf(`{"groupVersion": "%s/v1", "version": "v1"}`, group)
		about := fmt.Sprintf(`"name": %q, "versions": [%s], "preferredVersion": %s`, group, version, version)
		groups = append(groups, "{"+about+"}")
		replies["/apis/"+group] = `{"kind": "APIGroup", "apiVersion": "v1", ` + about + "}"
		list("/apis/"+group+"/v1", group+"/v1", resources...)
	}
	replies["/apis"] += strings.Join(groups, ",") + "]}"
	return replies
}

// What the caller may not read is no obstacle, and what is installed already is no change.
func TestPlanForThoseWithFewRights(t *testing.T) {
	registry, err := testkit.StartRegistry()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = registry.Close() })
	operator := testkit.Operator{Package: "p", Version: "1.0.0"}
	if _, err := registry.Push(t.Context(), "p:v1.0.0", operator.Bundle(), nil); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(t.TempDir(), "registries.conf")
	if err := registry.WriteRegistriesConf(conf, "registry.test"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONTAINERS_REGISTRIES_CONF", conf)
	policy := writeFile(t, `{"default":[{"type":"insecureAcceptAnything"}]}`)
	catalog := strings.ReplaceAll(sampleContent, "r/p:v1", operator.Image("registry.test"))
	for name, test := range map[string]struct {
		replies  map[string]string
		args     []string
		want     []string
		unwanted string
		err      string
	}{
		"what is installed is not known": {
			nil, nil, []string{"which are taken not to be there, as none of that name is known to be installed", " to create"}, "in the way", "",
		},
		"what is installed is guessed": {
			installedExtension("", "", ""), nil, []string{"which are taken to be as they were installed", " unchanged\n"}, "to change", "",
		},
		"the records are elsewhere": {
			with(installedExtension("", "", ""), recordsPath("elsewhere"), noSecrets),
			[]string{"--system-namespace", "elsewhere"},
			[]string{"there are no release records of it in namespace \"elsewhere\"", " unchanged\n"},
			"to create", "",
		},
		"it is being deleted": {
			installedExtension(`, "deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": ["f"]`, "", ""), nil,
			[]string{"in the way:\n  ClusterExtension \"x\" is being deleted since 2026-01-02T03:04:05Z\n"},
			"", "1 obstacle in the way",
		},
		"a version that there is not": {
			installedExtension("", "", ""),
			[]string{"--version", "2.x"},
			[]string{`no bundles found for package "p" matching version "2.x"; `, "versions"},
			"", "1 obstacle in the way",
		},
	} {
		replies := with(kindsOfBundles(), "/catalogs/c/api/v1/all", catalog)
		maps.Copy(replies, test.replies)
		kubeconfig := fewRightsBut(t, replies, `User "low" cannot get %s`)
		stdout, _, err := invoke(t, append([]string{"plan", "x", "--kubeconfig", kubeconfig, "--signature-policy", policy}, test.args...)...)
		if errorText(err) != test.err || err != nil && program.Code(err) != program.Failed {
			t.Errorf("%s: err = %v, want %q", name, err, test.err)
		}
		for _, want := range test.want {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: got\n%s\nwant in it %s", name, stdout, want)
			}
		}
		if test.unwanted != "" && strings.Contains(stdout, test.unwanted) {
			t.Errorf("%s: got\n%s\nwant %q not in it", name, stdout, test.unwanted)
		}
	}
}
