/**
 * Client and worker for FlowFabric, over the HTTP API of flowfabric serve and flowfabric dev --http.
 *
 * Client submits executions, follows them and answers them. Worker runs handlers. models has the bodies of the API.
 */
export type { Api, ApiOptions, CallOptions } from "./api.js"
export * from "./client.js"
export type { Codec } from "./encoding.js"
export { Failed, FlowFabricError, GateRefused, LeaseLost, Permanent, type FailOptions } from "./errors.js"
export type { FrameOptions } from "./frames.js"
export type { Amounts, ServiceCall } from "./gates.js"
export type { Attributes, LogLevel, TaskLog } from "./log.js"
export type * as models from "./models.js"
export type {
  Answer, AskOptions, ChildrenOptions, Message, Outcome, ReceiveOptions, Task, WaitOptions,
} from "./task.js"
export { Worker, type Handler, type WorkerOptions } from "./worker.js"
