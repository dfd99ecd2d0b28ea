package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// noAnswerError is the error when one of our own deadlines has passed. It is a [context.DeadlineExceeded].
type noAnswerError struct {
	what    string
	after   time.Duration
	trouble error // why there is no connection; nil when it seems to work
}

// with returns a copy that also has the problem of the connection.
func (e *noAnswerError) with(trouble error) *noAnswerError {
	return &noAnswerError{e.what, e.after, trouble}
}

func (e *noAnswerError) Error() string {
	s := fmt.Sprintf("%s: no answer within %s", e.what, e.after)
	if e.trouble != nil {
		s += ": " + e.trouble.Error()
	}
	return s
}

func (e *noAnswerError) Unwrap() []error {
	if e.trouble == nil {
		return []error{context.DeadlineExceeded}
	}
	return []error{context.DeadlineExceeded, e.trouble}
}

// serverError is an error of the server or the transport, without gRPC's decoration.
type serverError struct {
	text string
	kind error // one of kvstore's errors, or nil
	err  error // the original error
}

func (e *serverError) Error() string { return e.text }

func (e *serverError) Unwrap() []error {
	if e.kind == nil {
		return []error{e.err}
	}
	return []error{e.kind, e.err}
}

// fromRPC makes the error of a call readable, and adds the matching error of kvstore, if there is one.
func fromRPC(err error) error {
	if _, done := errors.AsType[*serverError](err); done {
		return err
	}
	if ee, ok := errors.AsType[rpctypes.EtcdError](err); ok { // from etcd's own client, which converts some errors
		return serverErrorOf(ee.Error(), ee.Code(), err)
	}
	if st, ok := status.FromError(err); ok {
		return serverErrorOf(st.Message(), st.Code(), err)
	}
	return err
}

func serverErrorOf(text string, code codes.Code, err error) error {
	return &serverError{text: cutText(text), kind: kindOf(text, code), err: err}
}

// fromReason makes an error from the text with which a server cancels a watch. It is the text of a
// gRPC error, without its code.
func fromReason(reason string) error {
	if reason == "" {
		reason = "the server cancelled the watch without a reason"
	}
	if _, desc, ok := strings.Cut(reason, "desc = "); ok {
		reason = desc
	}
	return serverErrorOf(reason, codes.Unknown, errors.New(cutText(reason)))
}

// kindOf returns the error of kvstore, for decisions of callers, that matches a gRPC error; nil for none.
func kindOf(message string, code codes.Code) error {
	for _, k := range []struct{ is, kind error }{
		{rpctypes.ErrGRPCCompacted, kvstore.ErrCompacted},
		{rpctypes.ErrGRPCFutureRev, kvstore.ErrServerChanged}, // we only request revisions that were reached
		{rpctypes.ErrGRPCPermissionDenied, kvstore.ErrPermissionDenied},
		{rpctypes.ErrGRPCAuthFailed, kvstore.ErrUnauthenticated},
		{rpctypes.ErrGRPCInvalidAuthToken, kvstore.ErrUnauthenticated},
		{rpctypes.ErrGRPCUserEmpty, kvstore.ErrUnauthenticated},
		{rpctypes.ErrGRPCUserNotFound, kvstore.ErrUserNotFound}, // never about the user of the connection
		{rpctypes.ErrGRPCRoleNotFound, kvstore.ErrRoleNotFound},
		{rpctypes.ErrGRPCNoSpace, kvstore.ErrNoSpace},
		{rpctypes.ErrGRPCLeaseNotFound, kvstore.ErrLeaseNotFound},
		{rpctypes.ErrGRPCAuthOldRevision, kvstore.ErrRetryRequest},
	} {
		if message == status.Convert(k.is).Message() {
			return k.kind
		}
	}
	switch {
	case tooLarge(code, message):
		return kvstore.ErrTooLarge
	case code == codes.Internal && strings.Contains(message, unreadableMessage):
		return kvstore.ErrProtocol
	case code == codes.InvalidArgument:
		return kvstore.ErrInvalidRequest
	case code == codes.PermissionDenied:
		return kvstore.ErrPermissionDenied
	case code == codes.Unauthenticated:
		return kvstore.ErrUnauthenticated
	default:
		return nil
	}
}

func message(err error) string { return status.Convert(err).Message() }

func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || status.Code(unwrapRPC(err)) == codes.DeadlineExceeded
}

func isUnavailable(err error) bool { return status.Code(unwrapRPC(err)) == codes.Unavailable }

// isTooLarge reports whether a message was larger than the receive limit, or larger than the
// server may send.
func isTooLarge(err error) bool {
	st := status.Convert(unwrapRPC(err))
	return tooLarge(st.Code(), st.Message())
}

func tooLarge(code codes.Code, message string) bool {
	return code == codes.ResourceExhausted && strings.Contains(message, "larger than max") || // the code also means busy
		code == codes.Internal && strings.Contains(message, tooManyParts)
}

// unreadableMessage is gRPC's error text for bytes that are not a message.
const unreadableMessage = "failed to unmarshal the received message"

func unwrapRPC(err error) error {
	if se, ok := errors.AsType[*serverError](err); ok {
		return se.err
	}
	return err
}
