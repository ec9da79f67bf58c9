#if os(Linux)
import CCurl
import Foundation
import KeepsakePlatform

/// One request as libcurl's easy handle. Used by one thread, and kept as long as libcurl has the handle: its callbacks
/// have this object as their context.
final class CurlTransfer {
  let number: Int
  let easy: UnsafeMutableRawPointer
  private let call: HTTPCall
  private let url: URL
  private let idleNanoseconds: UInt64
  /// What is sent, and its length; nil for a request that has no body.
  private let body: (bytes: UnsafeMutableRawBufferPointer, count: Int)?
  private var headers: UnsafeMutablePointer<curl_slist>?
  private var head = ResponseHead()
  private var sentCount: Int64 = 0
  private var mostSent: Int64 = 0
  private var lastProgress = DispatchTime.now().uptimeNanoseconds

  /// When the request has made no progress for too long, in nanoseconds of `DispatchTime`.
  var deadline: UInt64 { lastProgress + idleNanoseconds }

  /// Returns nil if libcurl can't make such a request.
  init?(_ number: Int, _ request: URLRequest, body: Data?, _ call: HTTPCall, idleSeconds: Double) {
    guard let url = request.url, let easy = curl_easy_init() else { return nil }
    (self.number, self.easy, self.call, self.url) = (number, easy, call, url)
    idleNanoseconds = UInt64(idleSeconds * 1e9)
    let method = request.httpMethod ?? "GET"
    // Where others send a body, none at all would leave a server waiting for its length.
    self.body = body.map(Self.copy) ?? (["POST", "PUT"].contains(method) ? Self.copy(Data()) : nil)
    guard prepare(), prepareHeaders(request.allHTTPHeaderFields ?? [:]), prepare(method) else { return nil }
  }

  deinit {
    curl_easy_cleanup(easy)
    curl_slist_free_all(headers)
    body?.bytes.deallocate()
  }

  private static func copy(_ data: Data) -> (bytes: UnsafeMutableRawBufferPointer, count: Int) {
    // At least a byte: to libcurl, no address means no body.
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, data.count), alignment: 1)
    data.copyBytes(to: copy)
    return (copy, data.count)
  }

  private func prepare() -> Bool {
    let context = Unmanaged.passUnretained(self).toOpaque()
    return [
      keepsake_curl_set_text(easy, CURLOPT_URL, url.absoluteString),
      keepsake_curl_set_long(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1),
      keepsake_curl_set_long(easy, CURLOPT_NOSIGNAL, 1),
      keepsake_curl_set_quick_exit(easy),
      keepsake_curl_set_close_on_exec(easy),
      keepsake_curl_set_long(easy, CURLOPT_TCP_KEEPALIVE, 1),
      keepsake_curl_set_long(easy, CURLOPT_MAXAGE_CONN, SyncLimits.keptConnectionSeconds),
      // As long as a request may make no progress, so that another address of the host is tried before that is over.
      keepsake_curl_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, Int(idleNanoseconds / 1_000_000)),
      // A proxy's own response is none of the cloud's.
      keepsake_curl_set_long(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1),
      keepsake_curl_set_pointer(easy, CURLOPT_HEADERDATA, context),
      keepsake_curl_set_receiver(easy, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
        CurlTransfer.at(context).didReceive(line: UnsafeRawBufferPointer(start: bytes, count: size * count))
          ? size * count : 0
      },
      keepsake_curl_set_pointer(easy, CURLOPT_WRITEDATA, context),
      keepsake_curl_set_receiver(easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
        CurlTransfer.at(context).didReceive(part: UnsafeRawBufferPointer(start: bytes, count: size * count))
          ? size * count : 0
      },
      keepsake_curl_set_long(easy, CURLOPT_NOPROGRESS, 0),
      keepsake_curl_set_pointer(easy, CURLOPT_XFERINFODATA, context),
      keepsake_curl_set_progress(easy) { context, _, _, _, sent in
        CurlTransfer.at(context).didSend(Int64(sent))
        return 0
      },
    ].allSatisfy { $0 == CURLE_OK }
  }

  private func prepare(_ method: String) -> Bool {
    var results = [CURLcode]()
    if method == "HEAD" { results.append(keepsake_curl_set_long(easy, CURLOPT_NOBODY, 1)) }
    if let body {
      results.append(keepsake_curl_set_size(easy, CURLOPT_POSTFIELDSIZE_LARGE, body.count))
      results.append(keepsake_curl_set_pointer(easy, CURLOPT_POSTFIELDS, body.bytes.baseAddress))
    }
    results.append(keepsake_curl_set_text(easy, CURLOPT_CUSTOMREQUEST, method))
    return results.allSatisfy { $0 == CURLE_OK }
  }

  private func prepareHeaders(_ fields: [String: String]) -> Bool {
    // Without these lines, libcurl would ask whether it may send a long body, and name a type that nobody chose.
    var lines = ["Expect:"]
    if fields["Content-Type"] == nil { lines.append("Content-Type:") }
    // A header without a value would be taken for one that is to be left out. URLRequest has refused values with line
    // breaks.
    for (name, value) in fields { lines.append(value.isEmpty ? "\(name);" : "\(name): \(value)") }
    for line in lines {
      guard let longer = curl_slist_append(headers, line) else { return false }
      headers = longer
    }
    return keepsake_curl_set_headers(easy, headers) == CURLE_OK
  }

  private static func at(_ context: UnsafeMutableRawPointer?) -> CurlTransfer {
    guard let context else { preconditionFailure("libcurl calls back with the context that it was given") }
    return Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
  }

  private func didSend(_ count: Int64) {
    guard count != sentCount else { return }
    (sentCount, lastProgress) = (count, DispatchTime.now().uptimeNanoseconds)
    // Over a kept connection that turns out to be dead, libcurl sends it again from the start.
    guard count > mostSent else { return }
    mostSent = count
    call.didSend(count, of: Int64(body?.count ?? 0))
  }

  /// Returns whether to continue.
  private func didReceive(line: UnsafeRawBufferPointer) -> Bool {
    lastProgress = DispatchTime.now().uptimeNanoseconds
    switch head.take(String(decoding: line, as: UTF8.self)) {
    case .more: return true
    case .invalid: return call.didReceive(nil)
    case .complete(let status, let fields):
      return call.didReceive(
        HTTPURLResponse(url: url, statusCode: status, httpVersion: nil, headerFields: fields))
    }
  }

  /// Returns whether to continue.
  private func didReceive(part: UnsafeRawBufferPointer) -> Bool {
    lastProgress = DispatchTime.now().uptimeNanoseconds
    return call.didReceive(Data(part))
  }

  /// Tells the call how it ended.
  func end(_ error: URLError?) {
    var count = 0
    let isKnown = keepsake_curl_get_long(easy, CURLINFO_REQUEST_SIZE, &count) == CURLE_OK
    call.didComplete(error, mayHaveArrived: !isKnown || count > 0)
  }

  /// What is thrown for a code of libcurl's; nil for success.
  static func error(_ code: CURLcode) -> URLError? {
    switch code {
    case CURLE_OK: nil
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: URLError(.cannotFindHost)
    case CURLE_COULDNT_CONNECT: URLError(.cannotConnectToHost)
    case CURLE_OPERATION_TIMEDOUT: URLError(.timedOut)
    case CURLE_SSL_CONNECT_ERROR: URLError(.secureConnectionFailed)
    case CURLE_PEER_FAILED_VERIFICATION: URLError(.serverCertificateUntrusted)
    case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE: URLError(.networkConnectionLost)
    case CURLE_URL_MALFORMAT: URLError(.badURL)
    // Of ours only the callbacks end a transfer so: they have said why.
    case CURLE_WRITE_ERROR: URLError(.cancelled)
    case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING: URLError(.badServerResponse)
    default: URLError(.unknown)
    }
  }
}
#endif
