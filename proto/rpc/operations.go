package rpc

import (
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"

	"github.com/anteroom/anteroom/internal/tokens"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
	authv3 "github.com/anteroom/anteroom/proto/envoy/service/auth/v3"
)

// scope says what an operation is about, which the token must name.
type scope uint8

const (
	ofNode  scope = iota // nothing that has a name
	ofRoom               // the request's room
	ofQueue              // the request's queue; without one all of them
	ofRoute              // a room that package envoy finds out; see AllowsRoom
)

// operation is what a method takes.
type operation struct {
	needs tokens.Rights // any of these; none: any token does
	about scope
	open  bool // no token is asked for
}

// operations is what every method of the programs' server takes. One that is not
// listed is refused; a test walks the services for it. docs/operating.md has the
// same table.
func operations() map[string]operation {
	put, take, manage := tokens.RightsOf(tokens.Put), tokens.RightsOf(tokens.Take), tokens.RightsOf(tokens.Manage)
	items := tokens.RightsOf(tokens.Take, tokens.Manage, tokens.View)               // who may see payloads
	numbers := tokens.RightsOf(tokens.Put, tokens.Take, tokens.Manage, tokens.View) // who may count
	return map[string]operation{
		anteroomv1.WaitingRoom_Join_FullMethodName:        {needs: put, about: ofRoom},
		anteroomv1.WaitingRoom_CheckIn_FullMethodName:     {needs: put, about: ofRoom},
		anteroomv1.WaitingRoom_Leave_FullMethodName:       {needs: put, about: ofRoom},
		anteroomv1.WaitingRoom_Abandon_FullMethodName:     {needs: put, about: ofRoom},
		anteroomv1.WaitingRoom_RefreshPass_FullMethodName: {needs: put, about: ofRoom},
		anteroomv1.WaitingRoom_EndSession_FullMethodName:  {needs: put, about: ofRoom},
		anteroomv1.WaitingRoom_Stream_FullMethodName:      {needs: put, about: ofRoom},
		anteroomv1.WaitingRoom_Status_FullMethodName:      {needs: numbers, about: ofRoom},

		anteroomv1.PriorityQueue_Insert_FullMethodName:            {needs: put, about: ofQueue},
		anteroomv1.PriorityQueue_InsertBatch_FullMethodName:       {needs: put, about: ofQueue},
		anteroomv1.PriorityQueue_DeleteMin_FullMethodName:         {needs: take, about: ofQueue},
		anteroomv1.PriorityQueue_Ack_FullMethodName:               {needs: take, about: ofQueue},
		anteroomv1.PriorityQueue_Session_FullMethodName:           {needs: tokens.RightsOf(tokens.Put, tokens.Take)}, // each of its calls is looked at: AllowsCall
		anteroomv1.PriorityQueue_Nack_FullMethodName:              {needs: take, about: ofQueue},
		anteroomv1.PriorityQueue_Extend_FullMethodName:            {needs: take, about: ofQueue},
		anteroomv1.PriorityQueue_AckBatch_FullMethodName:          {needs: take, about: ofQueue},
		anteroomv1.PriorityQueue_ExtendBatch_FullMethodName:       {needs: take, about: ofQueue},
		anteroomv1.PriorityQueue_Peek_FullMethodName:              {needs: items, about: ofQueue},
		anteroomv1.PriorityQueue_Watch_FullMethodName:             {needs: items, about: ofQueue},
		anteroomv1.PriorityQueue_DeadLetters_FullMethodName:       {needs: items, about: ofQueue},
		anteroomv1.PriorityQueue_Len_FullMethodName:               {needs: numbers, about: ofQueue},
		anteroomv1.PriorityQueue_Position_FullMethodName:          {needs: numbers, about: ofQueue},
		anteroomv1.PriorityQueue_Configure_FullMethodName:         {needs: manage, about: ofQueue},
		anteroomv1.PriorityQueue_Stats_FullMethodName:             {needs: numbers, about: ofQueue},
		anteroomv1.PriorityQueue_Update_FullMethodName:            {needs: manage, about: ofQueue},
		anteroomv1.PriorityQueue_Cancel_FullMethodName:            {needs: manage, about: ofQueue},
		anteroomv1.PriorityQueue_Pause_FullMethodName:             {needs: manage, about: ofQueue},
		anteroomv1.PriorityQueue_Resume_FullMethodName:            {needs: manage, about: ofQueue},
		anteroomv1.PriorityQueue_Drain_FullMethodName:             {needs: manage, about: ofQueue},
		anteroomv1.PriorityQueue_Purge_FullMethodName:             {needs: manage, about: ofQueue},
		anteroomv1.PriorityQueue_Requeue_FullMethodName:           {needs: manage, about: ofQueue},
		anteroomv1.PriorityQueue_DeleteDeadLetters_FullMethodName: {needs: manage, about: ofQueue},

		authv3.Authorization_Check_FullMethodName: {needs: tokens.RightsOf(tokens.Authorize), about: ofRoute},

		// Probes of health send no token, and learn no more than /readyz says.
		healthv1.Health_Check_FullMethodName:                                   {open: true},
		healthv1.Health_List_FullMethodName:                                    {},
		healthv1.Health_Watch_FullMethodName:                                   {},
		reflectionv1.ServerReflection_ServerReflectionInfo_FullMethodName:      {},
		reflectionv1alpha.ServerReflection_ServerReflectionInfo_FullMethodName: {},
	}
}
