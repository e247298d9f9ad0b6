package object

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// InForeground deletes exactly the object that was read. It stays until what it owns is gone, such as the
// pods of a Job: nothing of it runs any more then.
func InForeground(live metav1.Object) metav1.DeleteOptions {
	foreground := metav1.DeletePropagationForeground
	return metav1.DeleteOptions{
		PropagationPolicy: &foreground, Preconditions: metav1.NewUIDPreconditions(string(live.GetUID())),
	}
}
