import Foundation

/// Why something failed, in words that a person can read.
///
/// Foundation's errors describe themselves to programmers (`Error Domain=NSCocoaErrorDomain Code=260`), in other words
/// on each platform. Messages contain the system's reason instead.
package enum ErrorReason {
  /// Returns the reason of an error: for an error of Foundation in words, for any other its own description.
  package static func text(_ error: any Error) -> String {
    switch error {
    case let error as POSIXError: return system(error.code.rawValue)
    case let error as CocoaError: return text(cocoa: error)
    case let error as URLError: return text(url: error.code)
    case let error as DecodingError: return text(decoding: error)
    case let error as EncodingError:
      guard case .invalidValue(_, let context) = error else { return "a value can't be written" }
      return located(context.debugDescription, context.codingPath)
    default: break
    }
    // Only classes of Foundation describe themselves by their domain.
    guard type(of: error) is NSError.Type else { return "\(error)" }
    let error = error as NSError
    if let cause = underlying(error) { return text(cause) }
    return error.domain == NSPOSIXErrorDomain ? system(Int32(clamping: error.code)) : "the system's error \(error.code)"
  }

  /// Returns the number of the system's error that is behind an error of Foundation; nil if there is none.
  package static func systemNumber(of error: any Error) -> Int32? {
    if let error = error as? POSIXError { return error.code.rawValue }
    let error = error as NSError
    if error.domain == NSPOSIXErrorDomain { return Int32(clamping: error.code) }
    return underlying(error).flatMap(systemNumber)
  }

  private static func underlying(_ error: NSError) -> (any Error)? {
    error.userInfo[NSUnderlyingErrorKey] as? any Error
  }

  private static func system(_ number: Int32) -> String { String(cString: strerror(number)) }

  private static func text(cocoa error: CocoaError) -> String {
    if let number = systemNumber(of: error) { return system(number) }
    return switch error.code {
    case .fileNoSuchFile, .fileReadNoSuchFile: system(ENOENT)
    case .fileReadNoPermission, .fileWriteNoPermission: system(EACCES)
    case .fileWriteVolumeReadOnly: system(EROFS)
    case .fileWriteOutOfSpace: system(ENOSPC)
    case .fileWriteFileExists: system(EEXIST)
    case .fileReadTooLarge: "the file is too large"
    case .fileReadInvalidFileName, .fileWriteInvalidFileName: "the name is not valid"
    case .fileReadCorruptFile, .propertyListReadCorrupt: "the file is not well formed"
    case .fileReadInapplicableStringEncoding, .fileReadUnknownStringEncoding,
      .fileWriteInapplicableStringEncoding:
      "the text is in another encoding"
    default: "the system's error \(error.errorCode)"
    }
  }

  private static func text(url code: URLError.Code) -> String {
    switch code {
    case .cannotConnectToHost: "the cloud can't be reached: nothing accepts connections there"
    case .cannotFindHost, .dnsLookupFailed: "the cloud can't be reached: there is no host of this name"
    case .notConnectedToInternet, .dataNotAllowed, .internationalRoamingOff: "there is no connection to the network"
    case .timedOut: "the cloud did not respond in time"
    case .networkConnectionLost: "the connection to the cloud was lost"
    case .cancelled: "the request was cancelled"
    case .badURL, .unsupportedURL: "the address of the cloud is not valid"
    case .secureConnectionFailed: "no secure connection to the cloud can be made"
    case .serverCertificateUntrusted, .serverCertificateHasBadDate, .serverCertificateHasUnknownRoot,
      .serverCertificateNotYetValid:
      "the cloud's certificate is not trusted"
    default: "the request to the cloud failed (URL error \(code.rawValue))"
    }
  }

  private static func text(decoding error: DecodingError) -> String {
    switch error {
    case .keyNotFound(let key, let context): located("\"\(key.stringValue)\" is missing", context.codingPath)
    case .valueNotFound(_, let context): located("a value is missing", context.codingPath)
    case .typeMismatch(_, let context): located("a value is of another type than expected", context.codingPath)
    case .dataCorrupted(let context): located(context.debugDescription, context.codingPath)
    @unknown default: "a value can't be read"
    }
  }

  private static func located(_ text: String, _ path: [any CodingKey]) -> String {
    path.isEmpty
      ? text : path.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".") + ": " + text
  }
}
