package migration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/classic"
)

// annotationReplicas has, on a Deployment of classic OLM that was stopped, how many replicas it is to get back.
const annotationReplicas = "olm.operatorframework.io/migration-replicas"

// programs are the Deployments of classic OLM that act on operators, wherever they are.
var programs = []string{"catalog-operator", "olm-operator"}

var deployments = appsv1.SchemeGroupVersion.WithResource("deployments")

// maxReplicas is more than anybody runs: a larger number was written by somebody else.
const maxReplicas = 10

// quiet stops classic OLM, if it is not stopped, and waits until its pods are gone.
func (c *Cluster) quiet(ctx context.Context, run Run) error {
	found, err := c.programs(ctx)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("there is no Deployment %q to stop: use --mode %s if classic OLM is run in another way", programs[1], classic.Live)
	}
	for i := range found {
		one := &found[i]
		replicas, _, _ := unstructured.NestedInt64(one.Object, "spec", "replicas")
		if replicas == 0 {
			continue
		}
		ref := refOf(one)
		run.Say(fmt.Sprintf("stopping classic OLM: %s to 0 replicas, from %d", ref.Key(), replicas))
		err := c.patch(ctx, deployments, ref, map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{annotationReplicas: strconv.FormatInt(replicas, 10)}},
			"spec":     map[string]any{"replicas": 0},
		})
		if err != nil {
			return fmt.Errorf("stopping %s: %w", ref.Key(), err)
		}
	}
	err = wait.PollUntilContextTimeout(ctx, pollInterval, run.Timeout, true, func(ctx context.Context) (bool, error) {
		found, err := c.programs(ctx)
		if err != nil {
			return false, err
		}
		for i := range found {
			if !isStopped(&found[i]) {
				return false, nil
			}
		}
		return true, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("classic OLM still runs %s after its Deployments were told to have no replicas: something may put them back, as the version operator of OpenShift does; use --mode %s", run.Timeout, classic.Live)
	}
	return err
}

func isStopped(deployment *unstructured.Unstructured) bool {
	wanted, _, _ := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
	is, _, _ := unstructured.NestedInt64(deployment.Object, "status", "replicas")
	seen, _, _ := unstructured.NestedInt64(deployment.Object, "status", "observedGeneration")
	return wanted == 0 && is == 0 && seen >= deployment.GetGeneration()
}

// loudPatience bounds what is done about classic OLM when a person does not wait for the end of a move.
const loudPatience = 30 * time.Second

// loud starts what quiet has stopped: classic OLM is there for other operators, too, and is started again though the
// move was interrupted.
func (c *Cluster) loud(ctx context.Context, run Run) error {
	if ctx.Err() != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), loudPatience)
		defer cancel()
		ctx = late
	}
	found, err := c.programs(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for i := range found {
		one := &found[i]
		text, isOurs := one.GetAnnotations()[annotationReplicas]
		if !isOurs {
			continue
		}
		ref := refOf(one)
		replicas, err := strconv.ParseInt(text, 10, 32)
		if err != nil || replicas < 0 || replicas > maxReplicas {
			errs = append(errs, fmt.Errorf("%s was stopped, and its annotation %s does not say how many replicas it had: scale it yourself", ref.Key(), annotationReplicas))
			continue
		}
		run.Say(fmt.Sprintf("starting classic OLM: %s to %d replicas", ref.Key(), replicas))
		err = c.patch(ctx, deployments, ref, map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{annotationReplicas: nil}},
			"spec":     map[string]any{"replicas": replicas},
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("starting %s: %w", ref.Key(), err))
		}
	}
	return errors.Join(errs...)
}

func (c *Cluster) programs(ctx context.Context) ([]unstructured.Unstructured, error) {
	var found []unstructured.Unstructured
	for _, name := range programs {
		page, err := c.api.Resource(deployments).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, Limit: pageSize})
		if apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("looking for the programs of classic OLM: %w: use --mode %s if you may not stop them", err, classic.Live)
		}
		if err != nil {
			return nil, fmt.Errorf("looking for the programs of classic OLM: %w", err)
		}
		for _, one := range page.Items {
			if one.GetLabels()["app"] != name {
				continue
			}
			isOne, err := c.actsOnOperators(ctx, &one)
			if err != nil {
				return nil, err
			}
			if isOne {
				found = append(found, one)
			}
		}
	}
	return found, nil
}

// actsOnOperators says that the pods of a Deployment may write the ClusterServiceVersions of all namespaces. Anybody can give a
// Deployment of their own the name and the label, and could hold up all moves by it: one that does not stop, or that
// says that it is stopped and cannot be started.
func (c *Cluster) actsOnOperators(ctx context.Context, deployment *unstructured.Unstructured) (bool, error) {
	namespace := deployment.GetNamespace()
	account, _, _ := unstructured.NestedString(deployment.Object, "spec", "template", "spec", "serviceAccountName")
	review := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"user":               "system:serviceaccount:" + namespace + ":" + cmp.Or(account, "default"),
		"groups":             []any{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		"resourceAttributes": map[string]any{"group": csvs.Group, "resource": csvs.Resource, "verb": "update"},
	}}}
	review.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"))
	answer, err := c.api.Resource(authorizationv1.SchemeGroupVersion.WithResource("subjectaccessreviews")).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking whether %s is of classic OLM: %w", refOf(deployment).Key(), err)
	}
	isAllowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed")
	return isAllowed, nil
}

func refOf(live *unstructured.Unstructured) classic.Ref {
	return classic.Ref{Reference: object.ReferenceTo(object.KeyOf(live)), UID: live.GetUID()}
}
