// Package syncstore keeps a key family, the keys below one kvstore prefix, as its owner
// wants it.
package syncstore
