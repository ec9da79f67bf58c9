#if Cloud
import Hummingbird

/// Counts each request against its address's rate, before anything else is done with it.
struct RateMiddleware: RouterMiddleware {
  let gate: ServerGate

  func handle(
    _ request: Request, context: CloudContext, next: (Request, CloudContext) async throws -> Response
  ) async throws -> Response {
    try gate.rates.request(from: gate.client(of: request, context))
    return try await next(request, context)
  }
}
#endif
