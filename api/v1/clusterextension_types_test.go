package v1_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	subdomainRule = "must be a valid DNS1123 subdomain. It must contain only lowercase alphanumeric characters, " +
		"hyphens (-) or periods (.), start and end with an alphanumeric character, and be no longer than 253 characters"
	bundleRule   = "spec.source: bundle is required when sourceType is Bundle, and forbidden otherwise"
	sourceRule   = "spec.source: catalog is required when sourceType is Catalog, and forbidden otherwise"
	approvedRule = "spec.source.catalog.approvedVersion: approvedVersion must be one semantic version, such as 1.2.3, and no range"
	versionRule  = "spec.source.catalog.version: invalid version expression"
)

func extension(t *testing.T) object {
	t.Helper()
	return parseObject(t, `
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: argocd}
spec:
  namespace: argocd-system
  serviceAccount: {name: argocd-installer}
  source:
    sourceType: Catalog
    catalog: {packageName: argocd-operator}
`)
}

func TestClusterExtensionField(t *testing.T) {
	t.Parallel()
	admission := newAdmission(t, "clusterextensions")
	tests := map[string]struct {
		path  string
		value any
		want  []string
	}{
		"namespace":                      {"spec.namespace", "a-1", nil},
		"namespace of 63":                {"spec.namespace", strings.Repeat("a", 63), nil},
		"namespace of 64":                {"spec.namespace", strings.Repeat("a", 64), []string{"spec.namespace: Too long"}},
		"namespace empty":                {"spec.namespace", "", []string{"spec.namespace: namespace must be a valid DNS1123 label"}},
		"namespace with period":          {"spec.namespace", "a.b", []string{"spec.namespace: namespace must be a valid DNS1123 label"}},
		"namespace with upper case":      {"spec.namespace", "A", []string{"spec.namespace: namespace must be a valid DNS1123 label"}},
		"namespace ends with hyphen":     {"spec.namespace", "a-", []string{"spec.namespace: namespace must be a valid DNS1123 label"}},
		"service account with period":    {"spec.serviceAccount.name", "some.service-account", nil},
		"service account of 253":         {"spec.serviceAccount.name", strings.Repeat("a", 253), nil},
		"service account of 254":         {"spec.serviceAccount.name", strings.Repeat("a", 254), []string{"spec.serviceAccount.name: Too long"}},
		"service account empty":          {"spec.serviceAccount.name", "", []string{"spec.serviceAccount.name: name " + subdomainRule}},
		"service account starts with -":  {"spec.serviceAccount.name", "-a", []string{"spec.serviceAccount.name: name " + subdomainRule}},
		"service account double period":  {"spec.serviceAccount.name", "a..b", []string{"spec.serviceAccount.name: name " + subdomainRule}},
		"service account hyphen, period": {"spec.serviceAccount.name", "a-.b", []string{"spec.serviceAccount.name: name " + subdomainRule}},
		"no source type":                 {"spec.source", map[string]any{}, []string{"spec.source.sourceType: Required value"}},
		"unknown source type":            {"spec.source.sourceType", "Git", []string{"spec.source.sourceType: Unsupported value"}},
		"no catalog":                     {"spec.source", map[string]any{"sourceType": "Catalog"}, []string{sourceRule}},
		"bundle":                         {"spec.source", map[string]any{"sourceType": "Bundle", "bundle": map[string]any{"ref": "registry.test/a:v1"}}, nil},
		"no bundle":                      {"spec.source", map[string]any{"sourceType": "Bundle"}, []string{bundleRule}},
		"bundle and no ref":              {"spec.source", map[string]any{"sourceType": "Bundle", "bundle": map[string]any{}}, []string{"spec.source.bundle.ref: Required value"}},
		"bundle without a tag":           {"spec.source", map[string]any{"sourceType": "Bundle", "bundle": map[string]any{"ref": "registry.test/a"}}, []string{"spec.source.bundle.ref: must end with a digest or a tag"}},
		"bundle and catalog": {
			"spec.source",
			map[string]any{"sourceType": "Bundle", "bundle": map[string]any{"ref": "registry.test/a:v1"}, "catalog": map[string]any{"packageName": "a"}},
			[]string{sourceRule},
		},
		"catalog and bundle": {
			"spec.source",
			map[string]any{"sourceType": "Catalog", "bundle": map[string]any{"ref": "registry.test/a:v1"}, "catalog": map[string]any{"packageName": "a"}},
			[]string{bundleRule},
		},
		"approved version, prerelease":  {"spec.source.catalog.approvedVersion", "1.2.3-rc.1+20260101", nil},
		"approved version with v":       {"spec.source.catalog.approvedVersion", "v1.2.3", []string{approvedRule}},
		"approved version of two parts": {"spec.source.catalog.approvedVersion", "1.2", []string{approvedRule}},
		"approved range":                {"spec.source.catalog.approvedVersion", "1.x", []string{approvedRule}},
		"approved version with a blank": {"spec.source.catalog.approvedVersion", "1.2.3 ", []string{approvedRule}},
		"no package name":               {"spec.source.catalog", map[string]any{}, []string{"spec.source.catalog.packageName: Required value"}},
		"package name with period":      {"spec.source.catalog.packageName", "some.package", nil},
		"package name of 253":           {"spec.source.catalog.packageName", strings.Repeat("a", 253), nil},
		"package name of 254":           {"spec.source.catalog.packageName", strings.Repeat("a", 254), []string{"spec.source.catalog.packageName: Too long"}},
		"package name empty":            {"spec.source.catalog.packageName", "", []string{"spec.source.catalog.packageName: packageName " + subdomainRule}},
		"package name with _":           {"spec.source.catalog.packageName", "a_b", []string{"spec.source.catalog.packageName: packageName " + subdomainRule}},
		"package name with upper case":  {"spec.source.catalog.packageName", "aB", []string{"spec.source.catalog.packageName: packageName " + subdomainRule}},
		"channels":                      {"spec.source.catalog.channels", []any{"stable-v1", "1.1.x"}, nil},
		"channel twice":                 {"spec.source.catalog.channels", []any{"stable", "stable"}, nil},
		"no channels":                   {"spec.source.catalog.channels", []any{}, nil},
		"256 channels":                  {"spec.source.catalog.channels", repeat("stable", 256), nil},
		"257 channels":                  {"spec.source.catalog.channels", repeat("stable", 257), []string{"spec.source.catalog.channels: Too many"}},
		"channel of 253":                {"spec.source.catalog.channels", []any{strings.Repeat("a", 253)}, nil},
		"channel of 254":                {"spec.source.catalog.channels", []any{strings.Repeat("a", 254)}, []string{"spec.source.catalog.channels[0]: Too long"}},
		"channel with _": {
			"spec.source.catalog.channels",
			[]any{"ok", "original_40"},
			[]string{"spec.source.catalog.channels[1]: channels entries must be valid DNS1123 subdomains"},
		},
		"channel empty": {
			"spec.source.catalog.channels",
			[]any{""},
			[]string{"spec.source.catalog.channels[0]: channels entries must be valid DNS1123 subdomains"},
		},
		"selector syntax is judged later": {
			"spec.source.catalog.selector",
			map[string]any{
				"matchLabels":      map[string]any{"not a key!": "not a value!"},
				"matchExpressions": []any{map[string]any{"key": "a", "operator": "bad", "values": []any{"x"}}},
			},
			nil,
		},
		"selector without operator": {
			"spec.source.catalog.selector",
			map[string]any{"matchExpressions": []any{map[string]any{"key": "a"}}},
			[]string{"spec.source.catalog.selector.matchExpressions[0].operator: Required value"},
		},
		"policy SelfCertified": {"spec.source.catalog.upgradeConstraintPolicy", "SelfCertified", nil},
		"policy unknown":       {"spec.source.catalog.upgradeConstraintPolicy", "Any", []string{"spec.source.catalog.upgradeConstraintPolicy: Unsupported value"}},
		"policy empty":         {"spec.source.catalog.upgradeConstraintPolicy", "", []string{"spec.source.catalog.upgradeConstraintPolicy: Unsupported value"}},
		"approval Manual":      {"spec.source.catalog.upgradeApproval", "Manual", nil},
		"approval unknown":     {"spec.source.catalog.upgradeApproval", "Sometimes", []string{"spec.source.catalog.upgradeApproval: Unsupported value"}},
		"approved version":     {"spec.source.catalog.approvedVersion", "1.2.3+4", nil},
		"no approved version":  {"spec.source.catalog.approvedVersion", "", []string{approvedRule}},
		"approved of 254":      {"spec.source.catalog.approvedVersion", strings.Repeat("1", 254), []string{"spec.source.catalog.approvedVersion: Too long"}},
		"approved digest": {
			"spec.source.catalog",
			map[string]any{"packageName": "p", "approvedVersion": "1.2.3", "approvedDigest": "sha256:" + strings.Repeat("0", 64)},
			nil,
		},
		"another approved digest": {
			"spec.source.catalog",
			map[string]any{"packageName": "p", "approvedVersion": "1.2.3", "approvedDigest": "sha512:" + strings.Repeat("0", 128)},
			nil,
		},
		"approved digest without a version": {
			"spec.source.catalog.approvedDigest", "sha256:" + strings.Repeat("0", 64),
			[]string{"spec.source.catalog: approvedVersion is required when approvedDigest is specified"},
		},
		"approved tag": {
			"spec.source.catalog",
			map[string]any{"packageName": "p", "approvedVersion": "1.2.3", "approvedDigest": "latest"},
			[]string{"spec.source.catalog.approvedDigest: approvedDigest must be sha256 or sha512, a colon, and 64 or 128 hexadecimal digits"},
		},
		"approved rights of an image": {
			"spec.install.preflight.permissions",
			map[string]any{"growth": "Approve", "approvedVersion": "1.2.3", "approvedDigest": "sha256:" + strings.Repeat("0", 64)},
			nil,
		},
		"approved rights without a version": {
			"spec.install.preflight.permissions",
			map[string]any{"growth": "Approve", "approvedDigest": "sha256:" + strings.Repeat("0", 64)},
			[]string{"spec.install.preflight.permissions: approvedVersion is required when approvedDigest is specified"},
		},
		"approved rights of a tag": {
			"spec.install.preflight.permissions",
			map[string]any{"growth": "Approve", "approvedVersion": "1.2.3", "approvedDigest": "latest"},
			[]string{"spec.install.preflight.permissions.approvedDigest: approvedDigest must be sha256 or sha512, a colon, and 64 or 128 hexadecimal digits"},
		},
		"install empty":  {"spec.install", map[string]any{}, []string{"spec.install: at least one of [preflight replaceImmutable] are required when install is specified"}},
		"replaced kinds": {"spec.install", map[string]any{"replaceImmutable": []any{"Deployment", "Service"}}, nil},
		"replaced data": {
			"spec.install",
			map[string]any{"replaceImmutable": []any{"PersistentVolumeClaim"}},
			[]string{"spec.install.replaceImmutable[0]: Unsupported value"},
		},
		"replaced twice": {
			"spec.install",
			map[string]any{"replaceImmutable": []any{"Job", "Job"}},
			[]string{"spec.install.replaceImmutable[1]: Duplicate value"},
		},
		"preflight empty": {
			"spec.install.preflight",
			map[string]any{},
			[]string{"spec.install.preflight: at least one of [crdUpgradeSafety permissions] are required when preflight is specified"},
		},
		"no enforcement":      {"spec.install.preflight.crdUpgradeSafety", map[string]any{}, []string{"spec.install.preflight.crdUpgradeSafety.enforcement: Required value"}},
		"enforcement None":    {"spec.install.preflight.crdUpgradeSafety.enforcement", "None", nil},
		"enforcement Strict":  {"spec.install.preflight.crdUpgradeSafety.enforcement", "Strict", nil},
		"enforcement Warn":    {"spec.install.preflight.crdUpgradeSafety.enforcement", "Warn", nil},
		"enforcement unknown": {"spec.install.preflight.crdUpgradeSafety.enforcement", "Maybe", []string{"spec.install.preflight.crdUpgradeSafety.enforcement: Unsupported value"}},
		"exceptions": {
			"spec.install.preflight.crdUpgradeSafety",
			map[string]any{"enforcement": "Strict", "exceptions": []any{
				map[string]any{"crd": "samples.example.com", "check": "enum"}, map[string]any{"check": "enum"}, map[string]any{"crd": "samples.example.com"},
			}},
			nil,
		},
		"exception of everything": {
			"spec.install.preflight.crdUpgradeSafety",
			map[string]any{"enforcement": "Strict", "exceptions": []any{map[string]any{}}},
			[]string{"spec.install.preflight.crdUpgradeSafety.exceptions[0]: at least one of [crd check] are required in an exception"},
		},
		"101 exceptions": {
			"spec.install.preflight.crdUpgradeSafety",
			map[string]any{"enforcement": "Strict", "exceptions": slices.Repeat([]any{map[string]any{"check": "enum"}}, 101)},
			[]string{"spec.install.preflight.crdUpgradeSafety.exceptions: Too many"},
		},
		"growth Allow":                        {"spec.install.preflight.permissions", map[string]any{"growth": "Allow"}, nil},
		"growth Approve with approvedVersion": {"spec.install.preflight.permissions", map[string]any{"growth": "Approve", "approvedVersion": "1.2.3"}, nil},
		"growth unknown":                      {"spec.install.preflight.permissions", map[string]any{"growth": "Ask"}, []string{"spec.install.preflight.permissions.growth: Unsupported value"}},
		"no growth":                           {"spec.install.preflight.permissions", map[string]any{"approvedVersion": "1.2.3"}, []string{"spec.install.preflight.permissions.growth: Required value"}},
		"config": {
			"spec.config",
			map[string]any{"configType": "Inline", "inline": map[string]any{"watchNamespace": "a", "any": map[string]any{"depth": int64(1)}}},
			nil,
		},
		"config without type":   {"spec.config", map[string]any{"inline": map[string]any{"a": "b"}}, []string{"spec.config.configType: Required value"}},
		"config of other type":  {"spec.config", map[string]any{"configType": "Secret"}, []string{"spec.config.configType: Unsupported value"}},
		"config without inline": {"spec.config", map[string]any{"configType": "Inline"}, []string{"spec.config: inline is required when configType is Inline, and forbidden otherwise"}},
		"inline empty": {
			"spec.config",
			map[string]any{"configType": "Inline", "inline": map[string]any{}},
			[]string{"spec.config.inline: spec.config.inline in body should have at least 1 properties"},
		},
		"inline is no object": {"spec.config", map[string]any{"configType": "Inline", "inline": "a"}, []string{"spec.config.inline: Invalid value"}},
		"uninstall empty": {
			"spec.uninstall",
			map[string]any{},
			[]string{"spec.uninstall: at least one of [policy customResourceDefinitions customResources hooks] are required when uninstall is specified"},
		},
		"uninstall Orphan":            {"spec.uninstall", map[string]any{"policy": "Orphan"}, nil},
		"uninstall Keep":              {"spec.uninstall", map[string]any{"customResourceDefinitions": "Keep"}, nil},
		"uninstall RefuseWhileInUse":  {"spec.uninstall", map[string]any{"policy": "Delete", "customResourceDefinitions": "RefuseWhileInUse"}, nil},
		"uninstall DeleteFirst":       {"spec.uninstall", map[string]any{"customResourceDefinitions": "Delete", "customResources": "DeleteFirst"}, nil},
		"uninstall DeleteFirst alone": {"spec.uninstall", map[string]any{"customResources": "DeleteFirst"}, nil},
		"uninstall hooks Skip":        {"spec.uninstall", map[string]any{"hooks": "Skip"}, nil},
		"uninstall hooks Run":         {"spec.uninstall", map[string]any{"hooks": "Run", "customResourceDefinitions": "Keep"}, nil},
		"uninstall other hooks":       {"spec.uninstall", map[string]any{"hooks": "Some"}, []string{"spec.uninstall.hooks: Unsupported value"}},
		"uninstall Orphan and hooks": {
			"spec.uninstall",
			map[string]any{"policy": "Orphan", "hooks": "Skip"},
			[]string{"spec.uninstall: customResourceDefinitions, customResources and hooks are forbidden when policy is Orphan: everything stays"},
		},
		"uninstall Orphan and Keep": {
			"spec.uninstall",
			map[string]any{"policy": "Orphan", "customResourceDefinitions": "Keep"},
			[]string{"spec.uninstall: customResourceDefinitions, customResources and hooks are forbidden when policy is Orphan: everything stays"},
		},
		"uninstall Orphan and DeleteFirst": {
			"spec.uninstall",
			map[string]any{"policy": "Orphan", "customResources": "DeleteFirst"},
			[]string{"spec.uninstall: customResourceDefinitions, customResources and hooks are forbidden when policy is Orphan: everything stays"},
		},
		"uninstall Keep and DeleteFirst": {
			"spec.uninstall",
			map[string]any{"customResourceDefinitions": "Keep", "customResources": "DeleteFirst"},
			[]string{"spec.uninstall: customResources is forbidden unless customResourceDefinitions is Delete"},
		},
		"uninstall unknown": {
			"spec.uninstall",
			map[string]any{"customResourceDefinitions": "Ask"},
			[]string{"spec.uninstall.customResourceDefinitions: Unsupported value"},
		},
		"deadline 9":   {"spec.progressDeadlineMinutes", int64(9), []string{"spec.progressDeadlineMinutes: spec.progressDeadlineMinutes in body should be greater than or equal to 10"}},
		"deadline 10":  {"spec.progressDeadlineMinutes", int64(10), nil},
		"deadline 720": {"spec.progressDeadlineMinutes", int64(720), nil},
		"deadline 721": {"spec.progressDeadlineMinutes", int64(721), []string{"spec.progressDeadlineMinutes: spec.progressDeadlineMinutes in body should be less than or equal to 720"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := admission.create(t, extension(t).with(t, test.path, test.value))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s = %v (-want +got):\n%s", test.path, test.value, diff)
			}
		})
	}
}

func repeat(value string, times int) []any {
	values := make([]any, times)
	for i := range values {
		values[i] = value
	}
	return values
}

func TestClusterExtensionRequired(t *testing.T) {
	t.Parallel()
	admission := newAdmission(t, "clusterextensions")
	if got := admission.create(t, extension(t).without("spec")); got != nil {
		t.Errorf("without spec: rejected: %q; the published API accepts it", got)
	}
	for _, path := range []string{"spec.namespace", "spec.serviceAccount", "spec.serviceAccount.name", "spec.source"} {
		want := []string{path + ": Required value"}
		if diff := cmp.Diff(want, admission.create(t, extension(t).without(path))); diff != "" {
			t.Errorf("without %s (-want +got):\n%s", path, diff)
		}
	}
}

func TestClusterExtensionImmutable(t *testing.T) {
	t.Parallel()
	admission := newAdmission(t, "clusterextensions")
	tests := map[string]string{
		"spec.namespace":                  "namespace is immutable",
		"spec.serviceAccount.name":        "name is immutable",
		"spec.source.catalog.packageName": "packageName is immutable",
	}
	for path, message := range tests {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			old := extension(t)
			if got := admission.update(t, old, old); got != nil {
				t.Errorf("unchanged: rejected: %q", got)
			}
			want := []string{path + ": " + message}
			if diff := cmp.Diff(want, admission.update(t, old, old.with(t, path, "other"))); diff != "" {
				t.Errorf("changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClusterExtensionMutable(t *testing.T) {
	t.Parallel()
	admission := newAdmission(t, "clusterextensions")
	old := extension(t)
	changed := old.
		with(t, "spec.source.catalog.version", "1.x").
		with(t, "spec.source.catalog.channels", []any{"stable"}).
		with(t, "spec.source.catalog.upgradeConstraintPolicy", "SelfCertified").
		with(t, "spec.install.preflight.crdUpgradeSafety.enforcement", "None").
		with(t, "spec.progressDeadlineMinutes", int64(30))
	if got := admission.update(t, old, changed); got != nil {
		t.Errorf("rejected: %q", got)
	}
}

func TestClusterExtensionDefaults(t *testing.T) {
	t.Parallel()
	stored := newAdmission(t, "clusterextensions").store(extension(t))
	want := extension(t).
		with(t, "spec.source.catalog.upgradeConstraintPolicy", "CatalogProvided").
		with(t, "status.observedGeneration", int64(-1))
	if diff := cmp.Diff(want, stored); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

func TestClusterExtensionKeepsInlineConfig(t *testing.T) {
	t.Parallel()
	inline := map[string]any{"watchNamespace": "a", "deploymentConfig": map[string]any{"env": []any{"x"}}}
	manifest := extension(t).with(t, "spec.config", map[string]any{"configType": "Inline", "inline": inline})
	stored := newAdmission(t, "clusterextensions").store(manifest)
	if diff := cmp.Diff(any(inline), stored.at(t, "spec.config.inline")); diff != "" {
		t.Errorf("inline (-want +got):\n%s", diff)
	}
}

func TestClusterExtensionVersionAccepted(t *testing.T) {
	t.Parallel()
	admission := newAdmission(t, "clusterextensions")
	versions := []string{
		"1.2.3", "=1.2.3", "!=1.2.3", ">1.2.3", "<1.2.3", ">=1.2.3", "=>1.2.3", "<=1.2.3", "=<1.2.3", "~1.2.3", "~>1.2.3", "^1.2.3",
		"1", "1.2", "v1", "v1.2.3", ">= v1.2.3", "  1.2.3  ", "0", "0.0.0",
		"x", "X", "*", "1.x", "1.X", "1.*", "1.2.x", "1.2.X", "1.2.*", ">=1.*", "* || 1.0.0", "x.1.2", "1.x.3", "~*", "^*",
		"1.2.3-alpha", "1.2.3-alpha.1", "1.2.3--", "1.2.3+build", "1.2.3-rc.1+build.5", "1-rc", "*-0", "1.x-0",
		">=1.0.0 <2.0.0", ">=1.0.0,<2.0.0", ">=1.0.0, <2.0.0", ">=1.0.0 , <2.0.0", "1.0.0||2.0.0", "1.0.0 || 2.0.0", "<1 || >=2, <3 || ^5",
		"1.2.3 1.2.4", "1.2.3 =1.2.4", "1.2.3\t1.2.4",
		strings.Repeat("1", 64),
	}
	// The published API takes these although they are no range.
	versions = append(versions, "|", ">=|", "|.1 || 2", "1.*]", "1 || *]", "1.2.3-01", "99999999999999999999")
	// The published API rejects these although they are a range.
	versions = append(versions, "1.*.*", "1.*.3", ">=1.0.0 || *", ">=1.0.0, *", "1.1.* || 1.2.*")
	for _, version := range versions {
		if got := admission.create(t, extension(t).with(t, "spec.source.catalog.version", version)); got != nil {
			t.Errorf("version %q: rejected: %q", version, got)
		}
	}
}

func TestClusterExtensionVersionRejected(t *testing.T) {
	t.Parallel()
	admission := newAdmission(t, "clusterextensions")
	versions := []string{
		"", " ", "||", ",", "1.0.0 ||", "|| 1.0.0", "1.0.0,", ",1.0.0", "1.0.0,,2.0.0", "1.0.0 | 2.0.0",
		"1.0.0 - 2.0.0", "==1.0.0", "=!1.0.0", "!1.0.0", ">>1.0.0", "<<1.0.0", ">~1.0.0", "1.0.0 && 2.0.0", "1.0.0; 2.0.0",
		"1.2.3.4", "01.2.3", "1.02.3", "1.2.03", "1.Y", "1.2.Y", "V1.0.0", "vv1", "1.0.0>2.0.0", ">=1.0.0<2.0.0", "1.0.0=2.0.0",
		"1.2.3-", "1.2.3-a..b", "1.2.3+", "1.2.3-ä", "1..3", ".1", "1.", "latest", "foobar", ">", "1.2.3\n;",
	}
	for _, version := range versions {
		got := admission.create(t, extension(t).with(t, "spec.source.catalog.version", version))
		if diff := cmp.Diff([]string{versionRule}, got); diff != "" {
			t.Errorf("version %q (-want +got):\n%s", version, diff)
		}
	}
	long := extension(t).with(t, "spec.source.catalog.version", strings.Repeat("1", 65))
	if diff := cmp.Diff([]string{"spec.source.catalog.version: Too long"}, admission.create(t, long)); diff != "" {
		t.Errorf("version of 65 characters (-want +got):\n%s", diff)
	}
}

func TestClusterExtensionInstalledBundle(t *testing.T) {
	t.Parallel()
	admission := newAdmission(t, "clusterextensions")
	const (
		versionText = "status.install.bundle.version: version must be well-formed semver"
		releaseText = "status.install.bundle.release: release must be empty or consist of dot-separated identifiers " +
			"(numeric without leading zeros, or alphanumeric)"
	)
	type bundle = map[string]any
	tests := map[string]struct {
		bundle bundle
		want   []string
		reason string
	}{
		"name and version":       {bundle: bundle{"name": "p.v1.0.0", "version": "1.0.0"}},
		"release in the name":    {bundle: bundle{"name": "p.v1.0.0+2", "version": "1.0.0+2"}, reason: "catalogs name bundles so; status has to hold what is installed"},
		"upper case name":        {bundle: bundle{"name": "Foo_bar.v1", "version": "1.0.0"}, reason: "as above"},
		"long name":              {bundle: bundle{"name": strings.Repeat("n", 4096), "version": "1.0.0"}, reason: "as above"},
		"long version":           {bundle: bundle{"name": "p", "version": "1.0.0-" + strings.Repeat("a", 4096)}},
		"pre-release":            {bundle: bundle{"name": "p", "version": "1.0.0-rc.1+build"}},
		"release":                {bundle: bundle{"name": "p", "version": "1.0.0", "release": "2.alpha-1"}},
		"release 0":              {bundle: bundle{"name": "p", "version": "1.0.0", "release": "0"}},
		"release with hyphen":    {bundle: bundle{"name": "p", "version": "1.0.0", "release": "-"}},
		"release 0a":             {bundle: bundle{"name": "p", "version": "1.0.0", "release": "01a"}, reason: "alphanumeric, so a leading zero is legal"},
		"empty release":          {bundle: bundle{"name": "p", "version": "1.0.0", "release": ""}},
		"long release":           {bundle: bundle{"name": "p", "version": "1.0.0", "release": "1.20260801.abcdef0123456789"}, reason: "build metadata of any length can be a release"},
		"no name":                {bundle: bundle{"version": "1.0.0"}, want: []string{"status.install.bundle.name: Required value"}},
		"no version":             {bundle: bundle{"name": "p"}, want: []string{"status.install.bundle.version: Required value"}},
		"version is no version":  {bundle: bundle{"name": "p", "version": "one"}, want: []string{versionText}},
		"version starts with v":  {bundle: bundle{"name": "p", "version": "v1.0.0"}, want: []string{versionText}},
		"release with zero":      {bundle: bundle{"name": "p", "version": "1.0.0", "release": "01"}, want: []string{releaseText}},
		"release with gap":       {bundle: bundle{"name": "p", "version": "1.0.0", "release": "1..2"}, want: []string{releaseText}},
		"release with plus sign": {bundle: bundle{"name": "p", "version": "1.0.0", "release": "a+b"}, want: []string{releaseText}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := admission.create(t, extension(t).with(t, "status.install.bundle", test.bundle))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}
