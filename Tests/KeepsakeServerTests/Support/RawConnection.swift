#if Cloud
import Dispatch
import Foundation

#if canImport(Glibc)
import Glibc
private let streamType = Int32(SOCK_STREAM.rawValue)
#elseif canImport(Musl)
import Musl
private let streamType = SOCK_STREAM
#elseif canImport(Darwin)
import Darwin
private let streamType = SOCK_STREAM
#endif

/// A bare connection, for requests that no client would send.
final class RawConnection: Sendable {
  private let socketDescriptor: Int32

  init(port: Int) throws {
    socketDescriptor = socket(AF_INET, streamType, 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    let connected = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socketDescriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard connected == 0 else { throw POSIXError(.ECONNREFUSED) }
    var limit = timeval(tv_sec: 20, tv_usec: 0)
    setsockopt(socketDescriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit { close(socketDescriptor) }

  func send(_ text: String) async { await send(Data(text.utf8)) }

  func send(_ data: Data) async {
    await offPool {
      var rest = data[...]
      while !rest.isEmpty {
        let count = rest.withUnsafeBytes { write(self.socketDescriptor, $0.baseAddress, $0.count) }
        guard count > 0 else { return }
        rest = rest.dropFirst(count)
      }
    }
  }

  /// What is read when nothing came for long, though the connection is open.
  static let silence = "(silence)"

  /// What comes, up to where `mark` has come or the connection ends.
  func read(until mark: String) async -> String {
    await offPool { self.readNow(until: mark) }
  }

  /// Blocking calls don't belong on the few threads that all tasks share.
  private func offPool<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async { continuation.resume(returning: work()) }
    }
  }

  private func readNow(until mark: String) -> String {
    var received: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while received.count < 1 << 20 {
      let count = recv(socketDescriptor, &buffer, buffer.count, 0)
      if count < 0, errno == EAGAIN || errno == EWOULDBLOCK { return Self.silence }
      guard count > 0 else { break }
      received += buffer[..<count]
      if String(decoding: received, as: UTF8.self).contains(mark) { break }
    }
    return String(decoding: received, as: UTF8.self)
  }
}
#endif
