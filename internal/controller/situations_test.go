package controller

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/docker/distribution/registry/api/errcode"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/plan"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/crdupgrade"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// situation is a section of docs/troubleshoot.md, whose title is the name of the
// situation.
type situation struct {
	outcome Outcome

	// next is the next step, or a part of it. There is none where there is nothing
	// to do.
	next string

	// minutes is spec.progressDeadlineMinutes, which have passed.
	minutes int32
}

const sampleName = "sample-operator"

// wholeExtension is the one of which the page tells.
func wholeExtension() *ocv1.ClusterExtension {
	ext := extension()
	ext.Name, ext.Spec.Namespace, ext.Spec.ServiceAccount.Name = sampleName, sampleName, "installer"
	ext.Spec.Source.Catalog.PackageName = sampleName
	return ext
}

func sampleBundle(version string) bundle.Identity {
	return bundle.Identity{Package: sampleName, Name: sampleName + ".v" + version, Version: version}
}

func sampleInstalled(version string) *installation.Revision {
	return &installation.Revision{Bundle: sampleBundle(version), Image: "registry.example/" + sampleName + ":v" + version}
}

// failing is a pass that ended at a stage on the way to version 1.1.0.
func failing(stage Stage, err error) Outcome {
	return Outcome{Stage: stage, Err: err, Target: Target{
		Action: Install, Bundle: sampleBundle("1.1.0"), Image: "registry.example/" + sampleName + ":v1.1.0",
	}}
}

// upgrading is the same with version 1.0.0 installed.
func upgrading(stage Stage, err error) Outcome {
	outcome := failing(stage, err)
	outcome.Installed, outcome.Target.Action = sampleInstalled("1.0.0"), Upgrade
	return outcome
}

func atRest(outcome Outcome) Outcome {
	outcome.Installed = sampleInstalled("1.1.0")
	outcome.Target = Target{Action: Keep, Bundle: sampleBundle("1.1.0"), Resolution: &resolve.Resolution{Identity: sampleBundle("1.1.0"), Catalog: "community"}}
	outcome.Onward = outcome.Target
	return outcome
}

// choosing asks the catalogs of the page.
func choosing(t *testing.T, request resolve.Request, catalogs ...resolve.Catalog) Outcome {
	t.Helper()
	request.Package = sampleName
	_, err := resolve.Resolve(request, catalogs)
	if err == nil {
		t.Fatal("something was found")
	}
	outcome := Outcome{Stage: StageResolve, Err: err}
	if request.Installed != nil {
		outcome.Installed = sampleInstalled(request.Installed.Version)
	}
	return outcome
}

// community is a catalog with three versions, each of which replaces the one before.
func community(requirements ...*requirement.Property) resolve.Catalog {
	catalog := resolve.Catalog{Name: "community"}
	properties := map[string][]*requirement.Property{"1.2.0": requirements}
	catalog.Package = stating(sampleName, properties, "1.0.0", "1.1.0", "1.2.0")
	return catalog
}

// malformedError is what the client of catalogs says of a package.
type malformedError struct{}

func (malformedError) Error() string {
	return `error loading package "sample-operator": catalog "community": bundle "sample-operator.v1.1.0": type "olm.constraint": longer than 65536 bytes`
}

func (malformedError) Malformed() bool { return true }

func keyOf(kind, namespace, name string) object.Key {
	return object.Key{GroupKind: schema.GroupKind{Kind: kind}, Namespace: namespace, Name: name}
}

func refused(action string, object object.Key, err error) error {
	return &plan.ObjectsError{Failures: []plan.ObjectFailure{{Action: action, Object: object, Err: err}}}
}

func conflicting(holder object.Holder, objects ...object.Key) error {
	err := &object.ConflictError{Claimant: object.Owner{Name: sampleName, Namespace: sampleName}}
	for _, obj := range objects {
		err.Conflicts = append(err.Conflicts, object.Conflict{Object: obj, Holder: holder})
	}
	return err
}

func sampleRule(namespace, group, resource string, verbs ...string) permission.Rule {
	return permission.Rule{Namespace: namespace, PolicyRule: rbacv1.PolicyRule{
		APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs,
	}}
}

func missingRights(n int) error {
	rules := []permission.Rule{
		sampleRule("", "apiextensions.k8s.io", "customresourcedefinitions", "create"),
		sampleRule(sampleName, "", "serviceaccounts", "create"),
		sampleRule(sampleName, "apps", "deployments", "create"),
	}
	for i := len(rules); i < n; i++ {
		rules = append(rules, sampleRule(sampleName, "", fmt.Sprint("things-", i), "get", "list", "watch", "create", "update", "patch", "delete"))
	}
	return &permission.MissingError{Rules: rules}
}

func forbiddenTo(verb string) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, sampleName,
		fmt.Errorf("User \"system:serviceaccount:sample-operator:installer\" cannot %s resource \"deployments\" in API group \"apps\" in the namespace \"sample-operator\"", verb))
}

// situations are those of the page.
func situations(t *testing.T) map[string]situation {
	t.Helper()
	all := map[string]situation{}
	for _, some := range []map[string]situation{
		beforeChoice(), choices(t), imagesAndBundles(), checks(), refusals(), atWork(t),
	} {
		maps.Copy(all, some)
	}
	return all
}

func beforeChoice() map[string]situation {
	_, badRange := resolve.ParseRange("newest")
	timeout := errors.New("listing the release records: etcdserver: request timed out")
	return map[string]situation{
		"The ServiceAccount does not exist": {
			outcome: Outcome{Stage: StageValidate, Err: &MissingServiceAccountError{Namespace: sampleName, Name: "installer"}},
			next:    "create it",
		},
		"The ServiceAccount does not exist any more": {
			outcome: Outcome{Stage: StageValidate, Err: &MissingServiceAccountError{Namespace: sampleName, Name: "installer"}, Installed: sampleInstalled("1.0.0")},
			next:    "`kubectl delete --cascade=orphan clusterextension/sample-operator`, which keeps what is installed",
		},
		"The namespace does not exist": {
			outcome: Outcome{Stage: StageValidate, Err: &MissingServiceAccountError{Namespace: sampleName, Name: "installer", NoNamespace: true}},
			next:    "create it, and ServiceAccount \"installer\" in it",
		},
		"The release records cannot be read": {
			outcome: Outcome{Stage: StageObserve, Err: timeout, Observed: Observed{InstallationErr: timeout}},
			next:    "Secrets in the namespace of the controller",
		},
		"The spec cannot be carried out": {
			outcome: Outcome{Stage: StageResolve, Err: &InvalidSpecError{Err: badRange}},
			next:    "until the spec is edited",
		},
		"The configuration does not fit": {
			outcome: failing(StageRender, &bundle.ConfigError{Problems: []string{`unknown field "deploymentconfig"`, `unknown field "watchnamespaces"`}}),
			next:    "until the spec or the catalog changes",
		},
	}
}

func choices(t *testing.T) map[string]situation {
	t.Helper()
	v1, beyond := sampleBundle("1.0.0"), mustRange(t, ">=2.0.0")
	lacking := choosing(t, resolve.Request{Range: mustRange(t, "1.2.0"), Cluster: &requirement.Cluster{}},
		community(needsPackage("widgets", ">=1.0.0")))
	lacking.Supply.Providers = []string{`package "widgets" of catalog "community"`}
	other := community()
	other.Name = "vendor"
	other.Package = stating(sampleName, nil, "1.3.0")
	return map[string]situation{
		"No catalog has the package": {
			outcome: choosing(t, resolve.Request{}), next: "kubectl get clustercatalog",
		},
		"No version is in the range": {
			outcome: choosing(t, resolve.Request{Range: beyond}, community()), next: "kubectl extension explain",
		},
		"No bundle is in the channels": {
			outcome: choosing(t, resolve.Request{Channels: []string{"fast"}}, community()), next: "kubectl extension explain",
		},
		"No upgrade leads there": {
			outcome: choosing(t, resolve.Request{Range: mustRange(t, "1.2.0"), Installed: &v1}, community()),
			next:    "kubectl extension explain",
		},
		"What a bundle requires is not there": {outcome: lacking, next: `comes with package "widgets"`},
		"Catalogs disagree": {
			outcome: choosing(t, resolve.Request{}, community(), other), next: "spec.priority",
		},
		"A catalog cannot be read": {
			outcome: choosing(t, resolve.Request{}, resolve.Catalog{Name: "community", Err: errors.New(`catalog "community" is not being served`)}),
			next:    "kubectl describe clustercatalog community",
		},
		"What a catalog has of the package cannot be used": {
			outcome: choosing(t, resolve.Request{}, resolve.Catalog{Name: "community", Err: malformedError{}}),
			next:    "the publisher of the catalog has to fix it",
		},
	}
}

func imagesAndBundles() map[string]situation {
	const digest = "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
	unauthorized := &image.RegistryError{Op: "reading manifest v1.1.0 in registry.example/sample-operator", Err: errcode.ErrorCodeUnauthorized.WithMessage("authentication required")}
	return map[string]situation{
		"The image reference cannot be used": {
			outcome: failing(StageFetch, &UnusableImageError{Err: &image.ReferenceError{Ref: "sample-operator:v1", Err: errors.New("no registry")}}),
			next:    "until the catalog names another image",
		},
		"The image is refused": {
			outcome: failing(StageFetch, &UnusableImageError{Err: &image.LinkError{Entry: "manifests/csv.yaml"}}),
			next:    "until the catalog names another image",
		},
		"The image has moved": {
			outcome: upgrading(StageFetch, &MovedImageError{Moved: Moved{
				Image: "registry.example/sample-operator:v1.0.0", From: digest, To: "sha256:fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9",
			}}),
			next: "install another version",
		},
		"The registry wants other credentials": {
			outcome: failing(StageFetch, unauthorized), next: "pull secret",
		},
		"The registry cannot be read": {
			outcome: failing(StageFetch, &image.RegistryError{Op: "reading manifest v1.1.0 in registry.example/sample-operator", Err: errors.New("dial tcp: lookup registry.example: no such host")}),
			next:    "do mirrors and certificates",
		},
		"The bundle is broken": {
			outcome: failing(StageRender, &bundle.InvalidError{Violations: []bundle.Violation{
				{File: "manifests/csv.yaml", Path: "spec.install.spec.deployments", Message: "is empty"},
			}}),
			next: "spec.source.catalog.version",
		},
		"The bundle needs what is not supported": {
			outcome: failing(StageRender, &bundle.UnsupportedError{Reasons: []string{"bundle must support at least one of [AllNamespaces SingleNamespace OwnNamespace] install modes"}}),
			next:    "spec.source.catalog.version",
		},
		"An object is too large": {
			outcome: upgrading(StageApply, &object.TooLargeError{Object: keyOf("Secret", sampleName, "assets"), Bytes: 2621440, Limit: 1048576}),
			next:    "spec.source.catalog.version",
		},
		"The cluster is too old": {
			outcome: failing(StageRender, &UnmetError{Unmet: []requirement.Unmet{{Text: `requires Kubernetes "1.40.0" or later, and this is "1.36.0"`, Kubernetes: "1.40.0"}}}),
			next:    "upgrade the cluster",
		},
	}
}

func checks() map[string]situation {
	const widgets = "widgets.sample.clusterextensions.dev"
	definition := object.Key{GroupKind: object.DefinitionKind, Name: widgets}
	neighbour := upgrading(StageApply, conflicting(object.Holder{Kind: "ClusterExtension", Name: "sample"}, definition, keyOf("ClusterRole", "", "sample-operator-manager")))
	neighbour.Installed = nil
	neighbour.Observed.Surroundings.Neighbours = []Neighbour{{Name: "sample", Bundle: sampleBundle("1.0.0")}}
	approval := atRest(Outcome{Pending: &PendingError{Bundle: sampleBundle("1.2.0"), Growth: &preflight.ApprovalError{Version: "1.2.0", Gains: []permission.Gain{
		{Subject: `ServiceAccount "sample-operator/sample-operator"`, Rule: sampleRule("", "", "secrets", "get", "list", "watch")},
	}}}})
	suspended := atRest(Outcome{Suspended: &Suspension{
		Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Target: Target{Action: Upgrade, Bundle: sampleBundle("1.2.0")},
	}})
	manual := atRest(Outcome{Pending: &PendingError{Bundle: sampleBundle("1.2.0"), Manual: true}})
	return map[string]situation{
		"Rights are missing": {
			outcome: failing(StageApply, missingRights(3)),
			next:    "`kubectl extension bundle rbac clusterextension/sample-operator`",
		},
		"The upgrade would break what is stored": {
			outcome: upgrading(StageApply, &preflight.UnsafeError{
				Findings: []crdupgrade.Finding{{
					CRD: widgets, Version: "v1", Path: "^.spec", Check: "required", Detail: "new required fields: [size]",
					Advice: "set the field in all stored objects", Kind: crdupgrade.Blocks,
				}},
				Offenders: []string{`stored objects of "` + widgets + `": team-a/large: spec.size: Required value`},
			}),
			next: "set the field in all stored objects",
		},
		"Another extension has the package": {outcome: neighbour, next: "`kubectl annotate --overwrite clusterextension sample-operator olm.operatorframework.io/adopts-content-of=sample`"},
		"An object belongs to a Helm release": {
			outcome: failing(StageApply, conflicting(object.Holder{Kind: "Helm release", Namespace: "sample", Name: "sample"}, definition)),
			next:    "helm uninstall sample -n sample",
		},
		"An object belongs to nobody": {
			outcome: failing(StageApply, conflicting(object.Holder{Managers: []string{"kubectl-create"}}, keyOf("ConfigMap", sampleName, "settings"))),
			next:    "or delete the object with its data",
		},
		"The cluster does not know a kind": {
			outcome: failing(StageApply, &object.UnknownKindsError{Kinds: []string{"Certificate (cert-manager.io/v1)", "ServiceMonitor (monitoring.coreos.com/v1)"}}),
			next:    "install what provides them",
		},
		"The bundle is for another Kubernetes": {
			outcome: failing(StageApply, &object.UnknownKindsError{Kinds: []string{"PodDisruptionBudget (policy/v1beta1)"}, BuiltIn: []string{"PodDisruptionBudget (policy/v1beta1)"}}),
			next:    "choose another version",
		},
		"An upgrade waits for approval":                  {outcome: manual, next: "`kubectl extension approve sample-operator`"},
		"An upgrade would give the operator more rights": {outcome: approval, next: "approvedVersion"},
		"The extension is suspended":                     {outcome: suspended, next: "a resume upgrades to"},
		"What is approved cannot be installed": {
			outcome: failing(StageResolve, &UnapprovedError{
				Refusal: `version "1.1.5" is approved, and no catalog leads to it`, Bundle: sampleBundle("1.2.0"),
			}),
			next: "correct spec.source.catalog.approvedVersion",
		},
	}
}

func refusals() map[string]situation {
	deployment := keyOf("Deployment", sampleName, sampleName)
	role := keyOf("ClusterRole", "", "sample-operator-manager")
	repair := atRest(failing(StageRepair, refused("reading", deployment, forbiddenTo("get"))))
	repair.RepairErr = repair.Err
	gone := atRest(failing(StageRepair, &object.MissingNamespacesError{Namespaces: []string{"team-a"}}))
	gone.RepairErr = gone.Err
	return map[string]situation{
		"A right is refused": {
			outcome: failing(StageApply, refused("creating", deployment, forbiddenTo("create"))),
			next:    "kubectl extension bundle rbac",
		},
		"The controller may not act as the ServiceAccount": {
			outcome: failing(StageApply, fmt.Errorf("asking for the rights of the ServiceAccount in the whole cluster: %w", statusError(http.StatusForbidden,
				`serviceaccounts "installer" is forbidden: User "system:serviceaccount:olmv1-system:operator-controller-controller-manager" `+
					`cannot impersonate resource "serviceaccounts" in API group "" in the namespace "sample-operator"`))),
			next: "grant \"system:serviceaccount:olmv1-system:operator-controller-controller-manager\" impersonate on serviceaccounts in this namespace: " +
				"`kubectl apply -n sample-operator -k config/overlays/impersonate-by-namespace/namespace` does",
		},
		"The ServiceAccount may not grant": {
			outcome: failing(StageApply, refused("creating", role, apierrors.NewForbidden(schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterroles"}, role.Name,
				errors.New(`user "system:serviceaccount:sample-operator:installer" (groups=["system:serviceaccounts" "system:serviceaccounts:sample-operator" "system:authenticated"]) `+
					`is attempting to grant RBAC permissions not currently held: {APIGroups:[""], Resources:["secrets"], Verbs:["get"]}`)))),
			next: "kubectl extension bundle rbac",
		},
		"A webhook refuses": {
			outcome: failing(StageApply, refused("trying to create", deployment, statusError(http.StatusForbidden,
				`admission webhook "images.example.com" denied the request: image of no known registry`))),
			next: "has to let the object pass",
		},
		"An admission rule refuses": {
			outcome: upgrading(StageApply, refused("trying to create", keyOf("Pod", sampleName, "probe"), statusError(http.StatusForbidden,
				`pods "probe" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true`))),
			next: "no permission is missing",
		},
		"An object of the extension blocks another one": {
			outcome: upgrading(StageApply, refused("trying to write", keyOf("Service", sampleName, "web"), &object.CollisionError{
				Other: keyOf("Service", sampleName, "sample"),
				Err:   statusError(http.StatusUnprocessableEntity, `Service "web" is invalid: spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated`),
			})),
			next: "choose another version",
		},
		"A quota is used up": {
			outcome: failing(StageApply, refused("creating", keyOf("ConfigMap", sampleName, "settings"), statusError(http.StatusForbidden,
				`configmaps "settings" is forbidden: exceeded quota: small, requested: count/configmaps=1, used: count/configmaps=5, limited: count/configmaps=5`))),
			next: "raise the quota",
		},
		"A watched namespace does not exist": {
			outcome: failing(StageApply, &object.MissingNamespacesError{Namespaces: []string{"team-a", "team-b"}}),
			next:    "create them, with the permissions",
		},
		"A watched namespace does not exist any more": {outcome: gone, next: "or leave it out of spec.config.inline"},
		"A namespace is being deleted": {
			outcome: failing(StageApply, refused("trying to create", keyOf("Role", "team-a", sampleName), statusError(http.StatusForbidden,
				`roles.rbac.authorization.k8s.io "sample-operator" is forbidden: unable to create new content in namespace team-a because it is being terminated`))),
			next: "when the namespace is there anew",
		},
		"The namespace of an object does not exist": {
			outcome: failing(StageApply, refused("creating", keyOf("RoleBinding", "monitoring", sampleName),
				apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "monitoring"))),
			next: `create namespace "monitoring"`,
		},
		"The API server does not take an object": {
			outcome: upgrading(StageApply, refused("trying to write", deployment, statusError(http.StatusUnprocessableEntity,
				`Deployment.apps "sample-operator" is invalid: spec.template.spec.containers[0].image: Required value`))),
			next: "choose another version",
		},
		"The API server does not take what values make": {
			outcome: withValues(upgrading(StageApply, refused("applying", keyOf("Secret", sampleName, "good"), statusError(http.StatusUnprocessableEntity,
				` "" is invalid: patch: Invalid value: json: cannot unmarshal number into Go struct field Secret.stringData of type string`)))),
			next: "correct spec.config.inline.values if they make it so, or choose another version",
		},
		"The API server cannot read an object": {
			outcome: withValues(upgrading(StageApply, refused("creating", keyOf("Secret", sampleName, "good"), statusError(http.StatusBadRequest,
				`Secret in version "v1" cannot be handled as a Secret: json: cannot unmarshal number into Go struct field Secret.stringData of type string`)))),
			next: "correct spec.config.inline.values",
		},
		"What the templates make of values is invalid": {
			outcome: withValues(failing(StageRender, &bundle.InvalidError{Violations: []bundle.Violation{{File: "chart/templates/a.yaml", Path: "metadata.name", Message: `"A B" is invalid`}}})),
			next:    "correct spec.config.inline.values if they make it so, or choose another version",
		},
		"The name is too long for a chart": {
			outcome: failing(StageRender, &bundle.UnsupportedError{ByName: true, Reasons: []string{"a chart is installed under the name of its extension, which can have 53 characters"}}),
			next:    "create the extension again under a shorter name",
		},
		"A hook of a chart has failed": {
			outcome: upgrading(StageApply, &installation.HookFailedError{
				Event: hook.PreUpgrade, Object: keyOf("Job", sampleName, "migrate"), RetryIn: 10 * time.Minute,
				Why:  "BackoffLimitExceeded: Job has reached the specified backoff limit; its log ends with: no route to database",
				Next: nextHook,
			}),
			next: "see the log of its pods",
		},
		"A field cannot be changed":                        {outcome: upgrading(StageApply, immutableSelector()), next: "spec.install.replaceImmutable"},
		"What is installed cannot be repaired":             {outcome: repair, next: "kubectl extension bundle rbac"},
		"The API server refuses a field of another client": {outcome: otherWriter(), next: `have "kubectl-edit" leave out these fields`},
	}
}

// otherWriter is F12: two fields exclude each other, and one of them is set by another client again and again.
func otherWriter() Outcome {
	refusal := &object.RefusedError{Managers: []string{"kubectl-edit"}, Err: apierrors.NewInvalid(schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, sampleName,
		field.ErrorList{field.Invalid(field.NewPath("spec", "maxReplicas"), 3, "must be greater than or equal to `minReplicas`")})}
	outcome := atRest(failing(StageRepair, refused("applying", keyOf("HorizontalPodAutoscaler", sampleName, sampleName), refusal)))
	outcome.RepairErr = outcome.Err
	return outcome
}

// withValues is of an extension whose spec has values for a chart.
func withValues(outcome Outcome) Outcome {
	outcome.HasValues = true
	return outcome
}

// withoutOffer is at rest with version 1.1.0, which the catalogs do not offer.
func withoutOffer(t *testing.T, catalogs ...resolve.Catalog) Outcome {
	t.Helper()
	outcome := atRest(Outcome{})
	wanted := Wanted{Request: resolve.Request{Package: sampleName}}
	outcome.Target = decide(wanted, nil, Observed{Installation: installation.State{Installed: outcome.Installed}, Catalogs: catalogs})
	outcome.Onward = outcome.Target
	return outcome
}

func atWork(t *testing.T) map[string]situation {
	t.Helper()
	deployment := keyOf("Deployment", sampleName, sampleName)
	newer := atRest(Outcome{})
	newer.Onward.Resolution = &resolve.Resolution{
		Identity: sampleBundle("1.1.0"), Catalog: "community",
		LeftOut: []resolve.LeftOut{{Name: sampleName + ".v1.2.0", Version: "1.2.0", Catalog: "community", Reason: resolve.OutsideRange, Detail: `not in range "1.1.x"`}},
	}
	gone := atRest(Outcome{})
	gone.Target.Resolution, gone.Onward.Resolution = nil, nil
	return map[string]situation{
		"All is well":         {outcome: newer},
		"There is no catalog": {outcome: gone},
		"No catalog offers the package any more": {
			outcome: withoutOffer(t, resolve.Catalog{Name: "community"}), next: "check its name and the selector of catalogs",
		},
		"The catalog of an installed package cannot be read": {
			outcome: withoutOffer(t, resolve.Catalog{Name: "community", Err: &NotServedError{Catalog: "community"}}),
			next:    "`kubectl describe clustercatalog community`",
		},
		"A hook of a chart runs": {
			outcome: atRest(Outcome{Hook: &installation.HookUnderwayError{Event: hook.PostInstall, Object: keyOf("Job", sampleName, "notify"), RecheckAfter: time.Second}}),
		},
		"It rolls out": {
			outcome: atRest(Outcome{Workloads: []health.Workload{{Key: deployment, Available: metav1.ConditionTrue, RollingOut: true, Reason: "1 of 2 replicas are of the new version"}}}),
		},
		"A quota has no room for pods": {
			outcome: atRest(Outcome{Workloads: []health.Workload{{
				Key: deployment, Available: metav1.ConditionFalse, Refused: true,
				Reason: `its pods are forbidden: exceeded quota: small, requested: pods=1, used: pods=5, limited: pods=5`,
			}}}),
			next: "raise the quota, or make room in it",
		},
		"A workload does not serve": {
			outcome: atRest(Outcome{Workloads: []health.Workload{{Key: deployment, Available: metav1.ConditionFalse, Reason: "Deployment does not have minimum availability."}}}),
			next:    "kubectl -n sample-operator get pods,events",
		},
		"A webhook waits for its pods": {
			outcome: atRest(Outcome{Workloads: []health.Workload{
				{Key: deployment, Available: metav1.ConditionFalse, RollingOut: true, Reason: "0 of 1 replicas are available"},
				health.Deferred(object.Key{
					GroupKind: schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}, Name: "pods.example.com",
				}, []object.Key{deployment}),
			}}),
			next: `it is created when a pod that serves it is ready: Deployment "sample-operator"`,
		},
		"A conversion waits for its pods": {
			outcome: atRest(Outcome{Workloads: []health.Workload{
				health.Workload{}.Staying(object.Key{GroupKind: object.DefinitionKind, Name: "samples.example.com"}, []object.Key{deployment}),
			}}),
			next: `until a pod of the conversion webhook is ready: Deployment "sample-operator"`,
		},
		"A webhook prevents its own pods": {
			outcome: atRest(Outcome{Workloads: []health.Workload{health.OfDeployment(deployment, &appsv1.Deployment{Status: appsv1.DeploymentStatus{
				Conditions: []appsv1.DeploymentCondition{
					{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse},
					{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: `Internal error occurred: failed calling webhook "pods.example.com": ` +
						`failed to call webhook: Post "https://sample-operator-service.sample-operator.svc:443/mutate?timeout=10s": no endpoints available for service "sample-operator-service"`},
				},
			}})}}),
			next: "set spec.suspend, delete its webhook configuration, and remove spec.suspend when a pod is ready",
		},
		"A custom resource is not ready": {
			outcome: atRest(Outcome{Workloads: []health.Workload{{
				Key:       object.Key{GroupKind: object.CertificateKind, Namespace: sampleName, Name: "serving"},
				Available: metav1.ConditionFalse, Reason: "its condition Ready is False: DoesNotExist: Issuing certificate as Secret does not exist",
			}}}),
			next: "kubectl -n sample-operator describe Certificate.cert-manager.io serving",
		},
		"A name of a CRD is taken": {
			outcome: atRest(Outcome{Workloads: []health.Workload{{
				Key:       object.Key{GroupKind: object.DefinitionKind, Name: "samples.sample.clusterextensions.dev"},
				Available: metav1.ConditionFalse,
				Reason: `its condition NamesAccepted is False: ShortNamesConflict: "sp" is already in use: ` +
					`CustomResourceDefinition "spoons.sample.clusterextensions.dev" has it`,
			}}}),
			next: `CustomResourceDefinition "spoons.sample.clusterextensions.dev"`,
		},
		"A rollout has failed": {
			outcome: atRest(Outcome{Workloads: []health.Workload{{Key: deployment, Available: metav1.ConditionTrue, Stuck: true, Reason: `ReplicaSet "sample-operator-7d9c" has timed out progressing.`}}}),
			next:    "kubectl -n sample-operator get pods,events",
		},
		"Somebody changes an object again and again": {
			outcome: atRest(Outcome{Flapping: []string{`ConfigMap "settings" in namespace "sample-operator" (by "kubectl-edit")`}}),
		},
		"It takes too long": {
			outcome: failing(StageApply, missingRights(3)), minutes: 10,
			next: "`kubectl extension bundle rbac clusterextension/sample-operator`",
		},
	}
}

func immutableSelector() error {
	deployment := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	err := &preflight.ImmutableError{
		Kind: deployment, Fields: []string{"spec.selector"},
		Err: statusError(http.StatusUnprocessableEntity, `Deployment.apps "sample-operator" is invalid: spec.selector: field is immutable`),
	}
	return refused("trying to write", object.Key{GroupKind: deployment, Namespace: sampleName, Name: sampleName}, err)
}

func statusError(code int32, message string) error {
	reason := metav1.StatusReasonForbidden
	switch code {
	case http.StatusUnprocessableEntity:
		reason = metav1.StatusReasonInvalid
	case http.StatusBadRequest:
		reason = metav1.StatusReasonBadRequest
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}
