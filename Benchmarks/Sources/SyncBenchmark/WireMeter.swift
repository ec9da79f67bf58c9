import BenchmarkKit
import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
private let streamType = Int32(SOCK_STREAM.rawValue)
#elseif canImport(Darwin)
import Darwin
private let streamType = SOCK_STREAM
#endif

/// Stands between one device and the cloud and counts every byte, heads of requests and answers too.
final class WireMeter: Sendable {
  struct Count: Codable {
    var bytesUp = 0
    var bytesDown = 0
    /// Requests by what they ask for.
    var exchanges = 0
    var puts = 0
    var gets = 0

    static func - (later: Count, earlier: Count) -> Count {
      Count(
        bytesUp: later.bytesUp - earlier.bytesUp, bytesDown: later.bytesDown - earlier.bytesDown,
        exchanges: later.exchanges - earlier.exchanges, puts: later.puts - earlier.puts, gets: later.gets - earlier.gets
      )
    }
  }

  let url: URL
  private let listener: Int32
  private let target: Int
  private let state = Mutex(Count())

  var count: Count { state.withLock { $0 } }

  init(to cloud: CloudProcess) throws {
    target = cloud.port
    listener = socket(AF_INET, streamType, 0)
    var address = Self.loopback(0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listener = listener
    let isListening = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, length) == 0 && listen(listener, 64) == 0 && getsockname(listener, $0, &length) == 0
      }
    }
    guard isListening, let url = URL(string: "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))") else {
      throw BenchmarkError(message: "No port to listen on")
    }
    self.url = url
    Thread.detachNewThread { [self] in
      while true {
        let connection = accept(listener, nil, nil)
        guard connection >= 0 else { return }
        Thread.detachNewThread { [self] in pass(connection) }
      }
    }
  }

  func stop() {
    shutdown(listener, Int32(2))
    close(listener)
  }

  private static func loopback(_ port: Int) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    return address
  }

  private func pass(_ connection: Int32) {
    let onward = socket(AF_INET, streamType, 0)
    var address = Self.loopback(target)
    let isConnected = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(onward, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    if isConnected {
      let group = DispatchGroup()
      for isUp in [true, false] {
        group.enter()
        Thread.detachNewThread { [self] in
          isUp ? pump(connection, onward, isUp: true) : pump(onward, connection, isUp: false)
          shutdown(connection, Int32(2))
          shutdown(onward, Int32(2))
          group.leave()
        }
      }
      group.wait()
    }
    close(connection)
    close(onward)
  }

  private func pump(_ from: Int32, _ to: Int32, isUp: Bool) {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(from, &buffer, buffer.count, 0)
      guard count > 0 else { return }
      note(buffer[..<count], isUp: isUp)
      var sent = 0
      while sent < count {
        let step = buffer[sent..<count].withUnsafeBytes { send(to, $0.baseAddress, $0.count, Int32(0x4000)) }
        guard step > 0 else { return }
        sent += step
      }
    }
  }

  /// A request's first line comes as the beginning of a piece: each has a connection to itself, or waits for the answer
  /// before it.
  private func note(_ piece: ArraySlice<UInt8>, isUp: Bool) {
    state.withLock { count in
      if isUp { count.bytesUp += piece.count } else { count.bytesDown += piece.count }
      guard isUp else { return }
      if piece.starts(with: "POST /v1/exchange ".utf8) { count.exchanges += 1 }
      if piece.starts(with: "PUT /v1/contents/".utf8) { count.puts += 1 }
      if piece.starts(with: "GET /v1/contents/".utf8) { count.gets += 1 }
    }
  }
}
