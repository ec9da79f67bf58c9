#if Cloud
import GRDB
import HTTPTypes
import Hummingbird
import KeepsakeReplication
import Logging
import NIOCore
import NIOHTTP1

#if PostgreSQL
import KeepsakePostgreSQL
#endif

/// The outermost middleware: marks every response as the cloud's own, turns errors into JSON, and refuses compressed
/// request bodies.
///
/// A compressed body can expand a thousandfold, so none is accepted: large data in Keepsake is compressed already.
struct AnswerMiddleware: RouterMiddleware {
  let refusals: RefusalLog
  /// For requests whose method their address does not have.
  var addresses = Addresses()

  func handle(
    _ request: Request, context: CloudContext, next: (Request, CloudContext) async throws -> Response
  ) async throws -> Response {
    var response: Response
    do {
      if let encoding = request.headers[.contentEncoding], encoding.lowercased() != "identity" {
        throw APIError(
          .unsupportedMediaType, .encodingRefused,
          "Send the body without Content-Encoding: encoded bodies aren't supported.")
      }
      response = try await next(request, context)
    } catch let error as HTTPParserError {
      // The connection is broken: Hummingbird responds and closes it.
      throw error
    } catch let error as HTTPError where error.status == .notFound && isOtherMethod(request) {
      response = try APIError.method(addresses.methods(at: request.uri.path) ?? []).response()
    } catch {
      let refusal = Self.answer(to: error, logger: context.logger)
      refusals.refused(
        refusal,
        .init(method: request.method.rawValue, route: context.routeTemplate, peer: "\(context.peer)"))
      response = try refusal.response()
    }
    response.headers[.keepsakeProtocol] = "1"
    // The connection ends after such a request. A client that isn't informed would send its next request on it, and
    // might wait for a long time.
    if request.headers[.connection]?.lowercased() == "close" { response.headers[.connection] = "close" }
    if response.headers[.cacheControl] == nil { response.headers[.cacheControl] = "no-store" }
    return response
  }

  /// Whether the router found nothing only because the address doesn't have the request's method.
  private func isOtherMethod(_ request: Request) -> Bool {
    addresses.methods(at: request.uri.path)?.contains(request.method.rawValue) == false
  }

  static func answer(to error: any Error, logger: Logger) -> APIError {
    switch error {
    case let error as APIError:
      return error
    case ExchangeError.exceeds(let what, let count, let limit):
      return APIError.exceeds(what, count: count, limit: limit)
    case let error as ExchangeError:
      let code: APIError.Code = if case .unsupportedProtocol = error { .unsupportedProtocol } else { .badExchange }
      return APIError(.badRequest, code, error.description)
    case let error as BankOrderError:
      return APIError(error)
    case is NIOTooManyBytesError:
      return APIError(.contentTooLarge, .tooLarge, "The body is larger than this request may be.")
    case let error as HTTPError:
      return answer(to: error)
    case let error as ServerError where error.code == .overloaded:
      return APIError(.serviceUnavailable, .busy, error.message, retryAfterSeconds: 2)
    case let error as ContentStorageError where error.isPassing:
      logger.failure("The storage of large contents failed a request", error)
      return APIError(
        .serviceUnavailable, .busy, "Large contents can't be reached now; try again in a moment.",
        retryAfterSeconds: ServerLimits.busyRetrySeconds)
    case let error as ServerError where error.isDiskFull:
      return diskFull(error, logger)
    case let error as ServerError where error.code == .newerData:
      return elsewhere(error, logger)
    case let error as DatabaseError where CloudFence.isRefusal(error):
      // The cloud is in another database, whose server is about to take this one's place.
      return APIError(
        .serviceUnavailable, .busy, "The cloud is being moved to another database; try again in a moment.",
        retryAfterSeconds: 1)
    case let error as DatabaseError where error.resultCode == .SQLITE_FULL:
      return diskFull(error, logger)
    default:
      #if PostgreSQL
      if let error = error as? PostgreSQLError {
        if error.state == .diskFull { return diskFull(error, logger) }
        // Its tables were changed by newer servers, or its cloud has gone elsewhere; this server is about to notice.
        if error.state == .undefinedTable { return elsewhere(error, logger) }
        if error.isPassing {
          logger.failure("The database failed a request", error)
          return APIError(
            .serviceUnavailable, .busy, "The server's database can't be reached now; try again in a moment.",
            retryAfterSeconds: 2)
        }
      }
      #endif
      logger.failure("A request failed", error)
      return APIError(.internalServerError, .server, "The server failed; its log says why.")
    }
  }

  /// The operator's problem and not the player's: the device tries again later, and doesn't treat anything as refused.
  private static func diskFull(_ error: any Error, _ logger: Logger) -> APIError {
    logger.failure("The disk is full", error)
    return APIError(
      HTTPResponse.Status(code: 507, reasonPhrase: "Insufficient Storage"), .storageFull,
      "The server's disk is full; nothing more was stored.", retryAfterSeconds: ServerLimits.diskFullRetrySeconds)
  }

  /// The operator's, too: another server goes on with the cloud.
  private static func elsewhere(_ error: any Error, _ logger: Logger) -> APIError {
    logger.failure("This server can't go on with the cloud", error)
    return APIError(
      .serviceUnavailable, .busy, "The cloud goes on with another server; try again in a moment.", retryAfterSeconds: 2)
  }

  private static func answer(to error: HTTPError) -> APIError {
    switch error.status {
    case .notFound: APIError(.notFound, .notFound, "There is nothing at this address.")
    case .methodNotAllowed: APIError(.methodNotAllowed, .methodNotAllowed, "This address doesn't support this method.")
    case .contentTooLarge: APIError(.contentTooLarge, .tooLarge, "The body is larger than this request may be.")
    default: APIError(error.status, .badRequest, error.body ?? error.status.reasonPhrase)
    }
  }
}

extension HTTPField.Name {
  /// On every response: one without it (a portal's page, a proxy's error) is not from the cloud.
  static let keepsakeProtocol = Self("Keepsake-Protocol")!
  static let keepsakeAppKey = Self("Keepsake-App-Key")!
  /// In the response to an exchange: the device's new token, in place of the one that it has.
  static let keepsakeToken = Self("Keepsake-Token")!
  /// The length of a content in bytes, uncompressed.
  static let keepsakeLength = Self("Keepsake-Length")!
  /// The SHA-256 of the whole frame that a part belongs to.
  static let keepsakeFrame = Self("Keepsake-Frame")!
  /// The length in bytes of a frame that the client wants to put. The server checks it for room before the frame is
  /// sent.
  static let keepsakeTotal = Self("Keepsake-Total")!
  /// The content that a delta uses as its prefix.
  static let keepsakeBase = Self("Keepsake-Base")!
}
#endif
