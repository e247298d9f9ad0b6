// Package policykeeper keeps the ImagePolicies of the cluster, with the Secrets that they name, as
// package imagepolicy judges by them, and writes into the status of each whether it can be used.
//
//	ImagePolicies, Secrets -> Set
package policykeeper
