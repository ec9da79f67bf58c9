#if Cloud
import Hummingbird

/// Handles each request in a task of its own.
///
/// A task keeps the memory of its deepest calls until it ends. That of a connection ends with the connection, and
/// would hold what its requests needed, some 40 KB, for as long as it is idle or listens for events.
struct TaskResponder<Base: HTTPResponder>: HTTPResponder where Base.Context: Sendable {
  let base: Base

  func respond(to request: Request, context: Base.Context) async throws -> Response {
    // A child task runs on the same thread as this one, which other tasks would not.
    async let response = base.respond(to: request, context: context)
    return try await response
  }
}
#endif
