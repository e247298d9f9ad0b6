package corpus_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// installer is the ServiceAccount of each extension, in its namespace.
const installer = "installer"

// Comments before rules. The last three are before those that an extension can be
// installed without.
const (
	operatorComment  = "# What the operator may do"
	othersComment    = "# Roles that are not the bundle's own"
	storedComment    = "# To check stored objects"
	watchComment     = "# To notice changes at once."
	finalizerComment = "# Only where the admission plugin OwnerReferencesPermissionEnforcement is on."
)

// grants is what 'bundle rbac' prints.
type grants []document

// document is an object, and the rules if it is a role.
type document struct {
	object *unstructured.Unstructured
	rules  []rule
}

// rule is one of a role, with the comment that stands before it.
type rule struct {
	rbacv1.PolicyRule

	comment string
}

func (r rule) isAdvice() bool {
	return r.isForWatching() || strings.HasPrefix(r.comment, finalizerComment) || strings.HasPrefix(r.comment, storedComment)
}

// isGranted tells what has to be held to be granted to others.
func (r rule) isGranted() bool {
	return strings.HasPrefix(r.comment, operatorComment) || strings.HasPrefix(r.comment, othersComment)
}

func (r rule) isForWatching() bool {
	return strings.HasPrefix(r.comment, watchComment)
}

// printedGrants runs the command. from is nil for an installation.
func (s *suite) printedGrants(t *testing.T, to revision, from *revision) grants {
	t.Helper()
	args := []string{"bundle", "rbac", s.folder(to), "--namespace", to.pkg, "--service-account", installer, "--name", to.pkg}
	if from != nil {
		args = append(args, "--from", s.folder(*from))
	}
	if to.watch != "" {
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, []byte(to.config()), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", file)
	}
	text, err := s.LocalOutput(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	read, err := readGrants(text)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func readGrants(text string) (grants, error) {
	var read grants
	for part := range strings.SplitSeq(text, "---\n") {
		if part == "" {
			continue
		}
		found := document{object: &unstructured.Unstructured{}}
		if err := yaml.Unmarshal([]byte(part), &found.object.Object); err != nil {
			return nil, err
		}
		var role rbacv1.Role
		if strings.HasSuffix(found.object.GetKind(), "Role") {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.object.Object, &role); err != nil {
				return nil, err
			}
		}
		comments := commentsOf(part)
		if len(role.Rules) > len(comments) {
			return nil, fmt.Errorf("%d rules, and comments for %d", len(role.Rules), len(comments))
		}
		for i, policy := range role.Rules {
			found.rules = append(found.rules, rule{PolicyRule: policy, comment: comments[i]})
		}
		read = append(read, found)
	}
	return read, nil
}

// commentsOf gives for each item of a list at the left margin the last comment
// before it.
func commentsOf(text string) []string {
	var comments []string
	comment := ""
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "# "):
			comment = line
		case strings.HasPrefix(line, "- "):
			comments = append(comments, comment)
		}
	}
	return comments
}

// omission is what is left out of grants: the parts of a rule.
type omission struct {
	document int
	rule     int
	parts    []rbacv1.PolicyRule
}

// omissions are all rules that are needed, whole. What an operator may do is not
// where the ServiceAccount may grant everything.
func (g grants) omissions() []omission {
	var all []omission
	for i, document := range g {
		free := g.grantAnything(document)
		for j, rule := range document.rules {
			if !rule.isAdvice() && (!free || !rule.isGranted()) {
				all = append(all, omission{document: i, rule: j, parts: validation.BreakdownRule(rule.PolicyRule)})
			}
		}
	}
	return all
}

// grantAnything says whether the ServiceAccount may write any role and any binding
// to it where the rules of a document hold: operators often may do all with roles.
func (g grants) grantAnything(where document) bool {
	resource := strings.ToLower(where.object.GetKind()) + "s"
	var verbs []string
	for _, document := range g {
		if document.key() != where.key() && document.object.GetKind() != "ClusterRole" {
			continue
		}
		for _, rule := range document.rules {
			if hasAny(rule.APIGroups, rbacv1.GroupName) && hasAny(rule.Resources, resource) && len(rule.ResourceNames) == 0 {
				verbs = append(verbs, rule.Verbs...)
			}
		}
	}
	return hasAny(verbs, "escalate") && hasAny(verbs, "bind")
}

func hasAny(values []string, value string) bool {
	return slices.Contains(values, value) || slices.Contains(values, "*")
}

// sampled leaves one right out of one rule; false if nothing is needed.
func (g grants) sampled(random *rand.Rand) (omission, bool) {
	all := g.omissions()
	if len(all) == 0 {
		return omission{}, false
	}
	chosen := all[random.IntN(len(all))]
	chosen.parts = []rbacv1.PolicyRule{chosen.parts[random.IntN(len(chosen.parts))]}
	return chosen, true
}

// without gives grants that lack what is left out and no more.
func (g grants) without(left omission) grants {
	shorter := slices.Clone(g)
	target := &shorter[left.document]
	var rules []rule
	for i, rule := range target.rules {
		if i != left.rule {
			rules = append(rules, rule)
			continue
		}
		for _, part := range validation.BreakdownRule(rule.PolicyRule) {
			if !slices.ContainsFunc(left.parts, func(other rbacv1.PolicyRule) bool { return line("", part) == line("", other) }) {
				kept := rule
				kept.PolicyRule = part
				rules = append(rules, kept)
			}
		}
	}
	target.rules = rules
	return shorter
}

// unwatched gives grants without the rules to list and to watch.
func (g grants) unwatched() grants {
	shorter := slices.Clone(g)
	for i := range shorter {
		shorter[i].rules = slices.DeleteFunc(slices.Clone(shorter[i].rules), rule.isForWatching)
	}
	return shorter
}

// lines are those in which the lack is reported: one for each resource and name,
// with all verbs.
func (g grants) lines(left omission) []string {
	verbs := map[string][]string{}
	targets := map[string]rbacv1.PolicyRule{}
	for _, part := range left.parts {
		target := part
		target.Verbs = nil
		key := line("", target)
		targets[key] = target
		verbs[key] = append(verbs[key], part.Verbs...)
	}
	var lines []string
	for key, target := range targets {
		target.Verbs = verbs[key]
		lines = append(lines, "  "+line(g[left.document].object.GetNamespace(), target))
	}
	slices.Sort(lines)
	return lines
}

func line(namespace string, rule rbacv1.PolicyRule) string {
	return permission.Rule{Namespace: namespace, PolicyRule: rule}.String()
}

// put brings grants onto the cluster, in place of others: first the role that
// lacks something, so that the ServiceAccount never holds all it needs in between.
func (s *suite) put(t *testing.T, before, after grants, left *omission) {
	t.Helper()
	if left != nil {
		s.putDocument(t, after[left.document])
	}
	kept := map[string]bool{}
	for _, document := range after {
		s.putDocument(t, document)
		kept[document.key()] = true
	}
	for _, document := range before {
		if !kept[document.key()] {
			if err := s.Admin.Delete(t.Context(), document.object.DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if left != nil {
		s.awaitAccess(t, after[left.document].object, left.parts[0], false)
	}
}

func (d document) key() string {
	return d.object.GetKind() + " " + d.object.GetNamespace() + "/" + d.object.GetName()
}

func (s *suite) putDocument(t *testing.T, d document) {
	t.Helper()
	object := d.object.DeepCopy()
	if _, isRole := object.Object["rules"]; isRole {
		rules := make([]any, len(d.rules))
		for i := range d.rules {
			converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&d.rules[i].PolicyRule)
			if err != nil {
				t.Fatal(err)
			}
			rules[i] = converted
		}
		object.Object["rules"] = rules
	}
	err := s.Admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("corpus"), client.ForceOwnership)
	if err != nil {
		t.Fatal(err)
	}
}

// awaitAccess waits until the API server knows what has been granted or taken.
func (s *suite) awaitAccess(t *testing.T, role *unstructured.Unstructured, right rbacv1.PolicyRule, want bool) {
	t.Helper()
	pkg, _, _ := strings.Cut(role.GetName(), ":")
	eventually(t, fmt.Sprintf("%s may %s: %t", pkg, line(role.GetNamespace(), right), want), func(ctx context.Context) error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: accountOf(pkg)}}
		if len(right.NonResourceURLs) > 0 {
			review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: right.NonResourceURLs[0], Verb: right.Verbs[0]}
		} else {
			resource, subresource, _ := strings.Cut(right.Resources[0], "/")
			review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
				Namespace: role.GetNamespace(), Group: right.APIGroups[0], Resource: resource, Subresource: subresource,
				Name: strings.Join(right.ResourceNames, ""), Verb: right.Verbs[0],
			}
		}
		if err := s.Admin.Create(ctx, review); err != nil {
			return err
		}
		if review.Status.Allowed != want {
			return errors.New("the API server does not know yet")
		}
		return nil
	})
}

func accountOf(pkg string) string { return "system:serviceaccount:" + pkg + ":" + installer }

// TestGrantsAreExact says that no bundle has wildcards granted that it does not
// grant itself.
func TestGrantsAreExact(t *testing.T) {
	t.Parallel()
	for _, family := range readCorpus(t) {
		for _, revision := range family {
			if revision.err != nil {
				continue
			}
			subject := permission.Subject{Extension: revision.pkg, Namespace: revision.pkg, ServiceAccount: installer}
			needs, err := permission.NeedsOf(permission.Guessed, subject, permission.Content{Wanted: revision.objects})
			if err != nil {
				t.Errorf("%s: %v", revision, err)
				continue
			}
			own := wildcards(t, revision.objects)
			for _, granted := range permission.Grants(needs, subject) {
				object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(granted.Object)
				if err != nil {
					t.Fatal(err)
				}
				for found := range wildcards(t, []*unstructured.Unstructured{{Object: object}}) {
					if !own[found] {
						t.Errorf("%s: %s is granted, which no role of the bundle grants", revision, found)
					}
				}
			}
		}
	}
}

// wildcards are the rights in roles that have some, each on its own.
func wildcards(t *testing.T, objects []*unstructured.Unstructured) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, object := range objects {
		if kind := object.GetKind(); kind != "Role" && kind != "ClusterRole" {
			continue
		}
		var role rbacv1.Role
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, part := range validation.BreakdownRule(rule) {
				if strings.Contains(line("", part), "*") {
					found[line("", part)] = true
				}
			}
		}
	}
	return found
}
