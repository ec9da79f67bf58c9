/// Why a whole request can't be taken: whoever sent it doesn't speak this protocol, or means harm.
package enum ExchangeError: Error, Hashable, Sendable, CustomStringConvertible {
  case unsupportedProtocol(Int)
  case malformed(String)
  /// More of something than one request, or one container, may have.
  case tooMany(String)
  /// A wallet reply or the like from another protocol: the answer makes no sense.
  case badResponse(String)

  /// A stable word for logs and wire.
  package var code: String {
    switch self {
    case .unsupportedProtocol: "unsupportedProtocol"
    case .malformed: "malformed"
    case .tooMany: "tooMany"
    case .badResponse: "badResponse"
    }
  }

  package var description: String {
    switch self {
    case .unsupportedProtocol(let version):
      "protocol \(version) isn't spoken here: this side speaks \(ExchangeRequest.currentProtocol)"
    case .malformed(let what): "the request makes no sense: \(what)"
    case .tooMany(let what): "too many \(what)"
    case .badResponse(let what): "the answer makes no sense: \(what)"
    }
  }
}
