// Package webhook is what tests need to have the API server of a local cluster
// call webhooks: the server of an operator, which reads its certificate as a pod
// would, and a way to it by the name of a Service.
package webhook
