package classic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// asked is what tests change before a check.
type asked struct {
	*Cluster

	exam Examination
}

// fits is a catalog that has the installed bundle.
func fits(catalog string) Offer {
	return Offer{Catalog: catalog, DefaultChannel: "stable", Channels: []string{"stable"}}
}

// conditionFalse is what an operator says that must not be upgraded.
var conditionFalse = []metav1.Condition{{Type: "Upgradeable", Status: metav1.ConditionFalse, Reason: "Migrating", Message: "data moves"}}

func TestChecks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*asked)

		want  []string // check and severity of each finding
		texts []string // in the findings
		state State    // Eligible if it is empty
	}{
		"nothing stands against it": {change: func(*asked) {}},

		"M1: nothing is installed":  {change: func(a *asked) { a.subscription().Status.InstalledCSV = "" }, want: []string{"M1 blocks"}, texts: []string{"approve its InstallPlan"}, state: Ineligible},
		"M1: there is no CSV":       {change: func(a *asked) { a.CSVs = nil }, want: []string{"M1 blocks"}, texts: []string{"let classic OLM install it again"}, state: Ineligible},
		"M1: it is being installed": {change: func(a *asked) { a.csv().Status.Phase = operatorsv1alpha1.CSVPhaseInstalling }, want: []string{"M1 blocks"}, texts: []string{`"Installing"`, "wait until it has Succeeded"}, state: Ineligible},
		"M1: it has failed":         {change: func(a *asked) { a.csv().Status.Phase = operatorsv1alpha1.CSVPhaseFailed }, want: []string{"M1 needs attention"}, texts: []string{"is taken over as it is"}},
		"M1: an upgrade has failed": {change: func(a *asked) { a.subscription().Status.State = operatorsv1alpha1.SubscriptionStateFailed }, want: []string{"M1 needs attention"}, texts: []string{"neither AtLatestKnown nor UpgradePending"}},
		"M1, G12: an upgrade is pending": {
			change: func(a *asked) {
				a.subscription().Status.State, a.subscription().Status.CurrentCSV = operatorsv1alpha1.SubscriptionStateUpgradePending, "sample.v1.3.0"
			},
			want: []string{"M1 note"}, texts: []string{`"sample.v1.3.0" is pending`, `"sample.v1.2.0" is what moves`},
		},
		"M1: a plan is being carried out": {
			change: func(a *asked) { a.plan(operatorsv1alpha1.InstallPlanPhaseInstalling) }, want: []string{"M1 blocks"}, texts: []string{`InstallPlan "install-abc12"`}, state: Ineligible,
		},
		"M1: its plan is complete": {change: func(a *asked) { a.plan(operatorsv1alpha1.InstallPlanPhaseComplete) }},
		"M1: it has no such version": {change: func(a *asked) {
			a.csv().Annotations[annotationProperties] = `{"properties":[{"type":"olm.package","value":{"version":"one"}}]}`
		}, want: []string{"M1 blocks"}, texts: []string{"version of"}, state: Ineligible},

		"M2: a dependency alone":         {change: func(a *asked) { a.makeDependency(false) }, want: []string{"M2 needs attention"}, texts: []string{"dependency of needs-it"}},
		"M2: with what it is for":        {change: func(a *asked) { a.makeDependency(true) }, want: []string{"M2 note"}, texts: []string{"becomes an extension of its own"}},
		"M3: no catalog has the package": {change: func(a *asked) { a.exam.Offers = nil }, want: []string{"M3 blocks"}, texts: []string{"migrate catalogs"}, state: Ineligible},
		"M3, G10: no catalog has the installed version": {
			change: func(a *asked) { a.exam.Offers = []Offer{{Catalog: "community", DefaultChannel: "stable"}} },
			want:   []string{"M3 blocks"}, texts: []string{testCSV, "community"}, state: Ineligible,
		},
		"M3: it is in another channel": {
			change: func(a *asked) { a.subscription().Spec.Channel = "old" }, want: []string{"M3 blocks"}, texts: []string{`"old"`, "community (stable)"}, state: Ineligible,
		},
		"M3: the channel is that of the catalog": {change: func(a *asked) { a.subscription().Spec.Channel = "" }},
		"M3: a catalog cannot be read":           {change: func(a *asked) { a.exam.Unread = []string{`catalog "other"`} }, want: []string{"M3 needs attention"}, texts: []string{`catalog "other"`}},
		"M3: a source without an image":          {change: func(a *asked) { a.Sources[0].Spec.Image = "" }, want: []string{"M3 note"}, texts: []string{"has no image"}},
		"M3: a source without an image, and no catalog": {
			change: func(a *asked) { a.Sources[0].Spec.Image, a.exam.Offers = "", nil }, want: []string{"M3 blocks"}, texts: []string{"has no image"}, state: Ineligible,
		},
		"M4, G11: what it requires is there": {change: func(a *asked) { a.require() }, want: []string{"M4 note"}, texts: []string{"olm.gvk.required", `">=1.0.0"`}},
		"M4: what it requires is not there": {
			change: func(a *asked) {
				a.require()
				a.exam.Prospect = &Prospect{Refused: "no other", Unmet: []string{"package other"}}
			},
			want: []string{"M4 note", "M4 blocks"}, texts: []string{"package other", "--all"}, state: Ineligible,
		},
		"M5: it serves an API": {
			change: func(a *asked) {
				a.csv().Spec.APIServiceDefinitions.Owned = []operatorsv1alpha1.APIServiceDescription{{Name: "v1.example.com", DeploymentName: testPackage}}
			},
			want: []string{"M5 note"}, texts: []string{"1 APIs by APIServices", "taken over"},
		},
		"M6, G6: one namespace": {change: func(a *asked) { a.watch("a") }, want: []string{"M6 note"}, texts: []string{"namespaces: a"}},
		"M6: several, as the bundle can": {
			change: func(a *asked) { a.watch("a", "b"); a.supportsOnly(operatorsv1alpha1.InstallModeTypeMultiNamespace) }, want: []string{"M6 note"}, texts: []string{"namespaces: a, b"},
		},
		"M6: several, and the bundle cannot": {
			change: func(a *asked) { a.watch("a", "b") }, want: []string{"M6 blocks"}, texts: []string{"install mode MultiNamespace"}, state: Ineligible,
		},
		"M6: all, and the bundle cannot": {
			change: func(a *asked) { a.supportsOnly(operatorsv1alpha1.InstallModeTypeOwnNamespace) }, want: []string{"M6 blocks"}, texts: []string{"install mode AllNamespaces"}, state: Ineligible,
		},
		"M6: a selector": {
			change: func(a *asked) {
				a.Groups[0].Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
				a.Groups[0].Status.Namespaces = []string{"a"}
			},
			want: []string{"M6 blocks"}, texts: []string{"spec.targetNamespaces to a"}, state: Ineligible,
		},
		"M6: more than an extension can watch": {
			change: func(a *asked) {
				var many []string
				for i := range 101 {
					many = append(many, fmt.Sprintf("n-%03d", i))
				}
				a.watch(many...)
				a.supportsOnly(operatorsv1alpha1.InstallModeTypeMultiNamespace)
			},
			want: []string{"M6 blocks"}, texts: []string{"101", "100"}, state: Ineligible,
		},
		"M6: no group":   {change: func(a *asked) { a.Groups = nil }, want: []string{"M6 blocks"}, texts: []string{"there are 0 OperatorGroups"}, state: Ineligible},
		"M6: two groups": {change: func(a *asked) { a.Groups = append(a.Groups, a.Groups[0]) }, want: []string{"M6 blocks"}, texts: []string{"there are 2 OperatorGroups"}, state: Ineligible},

		"M7, G5: its ServiceAccount lacks rights": {
			change: func(a *asked) {
				a.Groups[0].Spec.ServiceAccountName = "tenant"
				a.exam.Prospect = &Prospect{Missing: []string{"get one", "get two", "get three"}}
			},
			want: []string{"M7 blocks"}, texts: []string{"tenant", "3 rights", "get one", "get two", "get three"}, state: Ineligible,
		},
		"M7, G5: it has them": {
			change: func(a *asked) { a.Groups[0].Spec.ServiceAccountName = "tenant"; a.exam.Prospect = &Prospect{} }, want: []string{"M7 note"}, texts: []string{`"tenant" is that of the extension`},
		},
		"M7: it does not exist": {
			change: func(a *asked) {
				a.Groups[0].Spec.ServiceAccountName = "tenant"
				a.exam.Prospect = &Prospect{NoAccount: true}
			}, want: []string{"M7 blocks"}, texts: []string{`"tenant" does not exist`}, state: Ineligible,
		},
		"M8: it must not be upgraded": {
			change: func(a *asked) { a.Conditions[0].Spec.Conditions = conditionFalse }, want: []string{"M8 blocks"}, texts: []string{"data moves"}, state: Ineligible,
		},
		"M8: somebody overrides that": {
			change: func(a *asked) {
				a.Conditions[0].Spec.Conditions = conditionFalse
				a.Conditions[0].Spec.Overrides = []metav1.Condition{{Type: "Upgradeable", Status: metav1.ConditionTrue}}
			},
			want: []string{"M8 note"}, texts: []string{"operatorConditions"},
		},
		"M9: it uses classic OLM":      {change: func(a *asked) { a.bind("operators.coreos.com", "subscriptions") }, want: []string{"M9 needs attention"}, texts: []string{"subscriptions"}},
		"M9: everybody has conditions": {change: func(a *asked) { a.bind("operators.coreos.com", "operatorconditions") }},
		"M9: it may do everything":     {change: func(a *asked) { a.bind("*", "*") }, want: []string{"M9 note"}, texts: []string{"may do everything"}},
		"M10: two own a definition": {
			change: func(a *asked) {
				a.install("other", "other", "other.v1")
				a.CSVs[1].Spec.CustomResourceDefinitions.Owned[0].Name = "samples.example.com"
			},
			want: []string{"M10 blocks"}, texts: []string{"other.v1"}, state: Ineligible,
		},
		"M10: the version before it is still there": {
			change: func(a *asked) {
				a.CSVs = append(a.CSVs, *a.csv().DeepCopy())
				a.CSVs[1].Name = "sample.v1.1.0"
			},
		},
		"M11: it converts": {
			change: func(a *asked) {
				a.csv().Spec.WebhookDefinitions = []operatorsv1alpha1.WebhookDescription{{Type: operatorsv1alpha1.ConversionWebhook, DeploymentName: testPackage}}
			},
			want: []string{"M11 note"}, texts: []string{"while classic OLM is stopped"},
		},
		"M12, G4: it asks for a cleanup": {change: func(a *asked) { a.csv().Spec.Cleanup.Enabled = true }, want: []string{"M12 note"}, texts: []string{"nothing is deleted"}},
		"M13: a selector in the configuration": {
			change: func(a *asked) {
				a.subscription().Spec.Config = &operatorsv1alpha1.SubscriptionConfig{Selector: &metav1.LabelSelector{}}
			},
			want: []string{"M13 note"}, texts: []string{"never honoured it"},
		},
		"M14: annotations that pods cannot have": {
			change: func(a *asked) { a.annotate(annotationBytes/2, annotationBytes/2) }, want: []string{"M14 note"}, texts: []string{"more than an object can"},
		},
		"M14: annotations that pods can have": {change: func(a *asked) { a.annotate(annotationBytes/2, annotationBytes/3) }},
		"M15: nobody is named": {
			change: func(a *asked) { a.exam.Prospect = &Prospect{NoAccount: true} }, want: []string{"M15 needs attention"}, texts: []string{"sample-installer"},
		},
		"M15: somebody is chosen who lacks rights": {
			change: func(a *asked) {
				a.exam.Choice.ServiceAccount, a.exam.Prospect = "mine", &Prospect{Missing: []string{"get one"}}
			},
			want: []string{"M15 blocks"}, texts: []string{`"mine"`, "get one"}, state: Ineligible,
		},
		"G16: there is an extension of the name": {
			change: func(a *asked) { a.extend("sample", "another", "") }, want: []string{"G16 blocks"}, texts: []string{"--name"}, state: Ineligible,
		},
		"G16: another name is free":                 {change: func(a *asked) { a.extend("sample", "another", ""); a.exam.Choice.Name = "free" }},
		"G16: there is an extension of the package": {change: func(a *asked) { a.extend("another", testPackage, "") }, want: []string{"G16 blocks"}, state: Ineligible},
		"G16: two Subscriptions of one name": {
			change: func(a *asked) {
				a.install(testPackage, "other", "other.v1")
				a.Subscriptions[1].Namespace, a.CSVs[1].Namespace = "elsewhere", "elsewhere"
			},
			want: []string{"G16 blocks"}, texts: []string{"elsewhere"}, state: Ineligible,
		},
		"G16: two Subscriptions of one package": {
			change: func(a *asked) {
				a.install("again", testPackage, "")
				a.Subscriptions[1].Namespace, a.CSVs = "elsewhere", a.CSVs[:1]
			},
			want: []string{"G16 needs attention"}, texts: []string{"again", "elsewhere", "same package"},
		},
		"G16, F30: a Subscription of the same name with a copy": {
			change: func(a *asked) {
				a.install("sample", testPackage, testCSV)
				a.Subscriptions[1].Namespace, a.CSVs = "elsewhere", a.CSVs[:1]
				a.Copies = []Object{thing("ClusterServiceVersion.operators.coreos.com", "elsewhere", testCSV, map[string]string{operatorsv1alpha1.CopiedLabelKey: testNamespace})}
				a.exam.Moves = func(types.NamespacedName) bool { return true }
			},
			want: []string{"G16 needs attention"}, texts: []string{"sample", "elsewhere", "has a copy"},
		},
		"M1, F30: it has a copy": {
			change: func(a *asked) {
				a.CSVs = nil
				a.Copies = []Object{thing("ClusterServiceVersion.operators.coreos.com", testNamespace, testCSV, map[string]string{operatorsv1alpha1.CopiedLabelKey: "elsewhere"})}
			},
			want: []string{"M1 blocks"}, texts: []string{"it is a copy of elsewhere/" + testCSV}, state: Ineligible,
		},
		"G17: a Subscription that was made again": {
			change: func(a *asked) {
				record, err := operatorNamed(t, a.Cluster, testPackage).Record("once", Quiet, Fates{}, nil)
				record.Done = true
				a.extend("sample", testPackage, testNamespace+"/sample")
				text, encodingErr := json.Marshal(record)
				if err != nil || encodingErr != nil {
					t.Fatal(err, encodingErr)
				}
				a.Extensions[0].Spec.Namespace, a.Extensions[0].Annotations[AnnotationRecord] = testNamespace, string(text)
			},
			want: []string{"G17 blocks"}, texts: []string{"git", "rollback"}, state: Conflict,
		},
		"G17: a move that has not ended": {
			change: func(a *asked) { a.extend("sample", testPackage, testNamespace+"/sample") }, want: []string{"G17 blocks"}, texts: []string{"cleanup", "rollback"}, state: Conflict,
		},
		"a move that has ended": {
			change: func(a *asked) {
				a.extend("sample", testPackage, testNamespace+"/sample")
				a.Subscriptions = nil
			},
			state: AlreadyMigrated,
		},
		"objects of others": {
			change: func(a *asked) { a.exam.Prospect = &Prospect{InTheWay: []string{"a Service of others"}} }, want: []string{"plan blocks"}, state: Ineligible,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &asked{Cluster: newCluster(), exam: Examination{Offers: []Offer{fits("community")}}}
			test.change(a)
			a.exam.Cluster, a.exam.Operator = a.Cluster, operatorNamed(t, a.Cluster, testPackage)
			got := a.exam.Verdict()
			var findings, texts []string
			for _, one := range got.Findings {
				findings = append(findings, one.Check+" "+string(one.Severity))
				texts = append(texts, one.String())
			}
			if !slices.Equal(findings, test.want) {
				t.Errorf("got %q, want %q:\n%s", findings, test.want, strings.Join(texts, "\n"))
			}
			want := test.state
			if want == "" {
				want = Eligible
			}
			if got.State != want {
				t.Errorf("got %s, want %s", got.State, want)
			}
			for _, text := range test.texts {
				if all := strings.Join(texts, "\n"); !strings.Contains(all, text) {
					t.Errorf("%s is not in %s", text, all)
				}
			}
		})
	}
}

// makeDependency makes the operator one that classic OLM has installed for another one.
func (a *asked) plan(phase operatorsv1alpha1.InstallPlanPhase) {
	a.Plans = []operatorsv1alpha1.InstallPlan{{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "install-abc12"},
		Spec:       operatorsv1alpha1.InstallPlanSpec{Approved: true, ClusterServiceVersionNames: []string{testCSV}},
		Status:     operatorsv1alpha1.InstallPlanStatus{Phase: phase},
	}}
}

func (a *asked) makeDependency(moves bool) {
	a.subscription().Annotations = map[string]string{annotationGenerated: "install-1"}
	a.install("needs-it", "needs-it", "needs-it.v1")
	a.CSVs[1].Annotations[annotationProperties] = `{"properties":[{"type":"olm.package.required","value":{"packageName":"sample","versionRange":">1"}}]}`
	a.exam.Moves = func(name types.NamespacedName) bool { return moves && name.Name == "needs-it" }
}

func (a *asked) require() {
	a.csv().Annotations[annotationProperties] = `{"properties":[{"type":"olm.gvk.required","value":{"group":"example.org","kind":"Other","version":"v1"}},
		{"type":"olm.package.required","value":{"packageName":"other","versionRange":"\u003e=1.0.0"}}]}`
}

// annotate makes annotations of so many bytes for the ClusterServiceVersion, and for the pods.
func (a *asked) annotate(csv, pods int) {
	a.csv().Annotations["alm-examples"] = strings.Repeat("x", csv)
	template := &a.csv().Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template
	template.Annotations = map[string]string{"own": strings.Repeat("x", pods)}
}

// bind gives the operator a right to all objects of a kind.
func (a *asked) bind(group, resource string) {
	a.ClusterRoles = append(a.ClusterRoles, rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "granted"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"*"}}},
	})
	a.ClusterRoleBindings = append(a.ClusterRoleBindings, rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "granted"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "granted"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: testNamespace, Name: testAccount}},
	})
}

// extend adds an extension, which was made from a Subscription if that is not empty.
func (a *asked) extend(name, pkg, from string) {
	ext := ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}}
	ext.Spec.Source.Catalog = &ocv1.CatalogFilter{PackageName: pkg}
	if from != "" {
		ext.Annotations = map[string]string{ocv1.MigratedFromSubscriptionAnnotation: from}
	}
	a.Extensions = append(a.Extensions, ext)
}

// Rights that somebody has added to a role of classic OLM go with it, which is said. What it has
// added itself to the cluster-wide copy is not somebody's.
func TestChangedRights(t *testing.T) {
	t.Parallel()
	a := &asked{Cluster: newCluster(), exam: Examination{Offers: []Offer{fits("community")}}}
	made := role(t, testNamespace)
	binding := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: made.Name}
	hash, err := BindingHash(binding, nil)
	if err != nil {
		t.Fatal(err)
	}
	wide := metav1.ObjectMeta{Name: made.Name, UID: "wide", Labels: made.Labels}
	a.Roles = []rbacv1.Role{made}
	a.ClusterRoles = []rbacv1.ClusterRole{{ObjectMeta: wide, Rules: append(leaderElection(), rbacv1.PolicyRule{
		Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"namespaces"},
	})}}
	binding.Kind = "ClusterRole"
	a.ClusterRoleBindings = []rbacv1.ClusterRoleBinding{{
		ObjectMeta: metav1.ObjectMeta{Name: made.Name, UID: "wide-binding", Labels: labels(labelRightsHash, hash)}, RoleRef: binding,
	}}
	count := func() int {
		a.exam.Cluster, a.exam.Operator = a.Cluster, operatorNamed(t, a.Cluster, testPackage)
		return len(a.exam.Verdict().Findings)
	}
	if n := count(); n != 0 {
		t.Errorf("%d findings where nobody has changed anything", n)
	}
	a.Roles[0].Rules = append(leaderElection(), rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}})
	a.ClusterRoleBindings[0].Subjects = []rbacv1.Subject{{Kind: "User", Name: "somebody"}}
	if n := count(); n != 2 {
		t.Errorf("%d findings where a role and a binding were changed", n)
	}
}

// Of two operators of one package, one can become an extension: the other would have been let go of, and be nobody's.
func TestPackageMovesOnce(t *testing.T) {
	t.Parallel()
	c := newCluster()
	c.install("twin", testPackage, "sample.v9")
	c.CSVs[1].Spec.CustomResourceDefinitions.Owned = nil
	for _, bothMove := range []bool{true, false} {
		exam := Examination{Cluster: c, Operator: operatorNamed(t, c, testPackage), Offers: []Offer{fits("community")}, Moves: func(name types.NamespacedName) bool {
			return bothMove || name.Name == testPackage
		}}
		verdict := exam.Verdict()
		isBlocked := slices.ContainsFunc(verdict.Findings, func(one Finding) bool {
			return one.Check == "G16" && one.Severity == Blocks && strings.Contains(one.Text, `"twin"`)
		})
		if isBlocked != bothMove {
			t.Errorf("where both move is %t: %v", bothMove, verdict.Findings)
		}
	}
}
