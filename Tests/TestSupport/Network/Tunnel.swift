import Dispatch
import Foundation
import Synchronization

/// One connection through a `WatchingProxy`, with just enough of HTTP/1.1 to find where heads and bodies end.
final class Tunnel: Sendable {
  private enum End { case finished, cut }
  /// The request in progress. There is one at a time: devices don't send the next before the response.
  private struct Current {
    var trap: Trap?
    var requestBytes = 0
    var answerHead: [UInt8]? = []
    var answerBytes = 0
    var answerInAll: Int?
  }
  private let device: Int32
  private let server: Int32
  private let current = Mutex(Current())

  init(device: Int32, server: Int32) { (self.device, self.server) = (device, server) }

  /// Forwards bytes until the connection ends; blocks. `began` is called with the name of each request, and returns the
  /// trap that holds it, if any.
  func run(_ began: @escaping @Sendable (String) -> Trap?) {
    let group = DispatchGroup()
    for work in [{ self.up(began) }, { self.down() }] as [@Sendable () -> End] {
      group.enter()
      Thread.detachNewThread { [self] in
        if work() == .cut {
          cut()
        } else {
          for descriptor in [device, server] { Sockets.shutDown(descriptor) }
        }
        group.leave()
      }
    }
    group.wait()
  }

  func cut() { for descriptor in [device, server] { Sockets.reset(descriptor) } }

  // MARK: To the server

  private func up(_ began: (String) -> Trap?) -> End {
    var head: [UInt8] = []
    var bodyLeft = 0
    var half: Int?
    var sent = 0
    while var bytes = Sockets.receive(device) {
      while !bytes.isEmpty {
        if bodyLeft == 0 {
          // One byte at a time up to the end of the head: it is short.
          head.append(bytes.removeFirst())
          guard head.suffix(4) == Array("\r\n\r\n".utf8)[...] else { continue }
          let text = String(decoding: head, as: UTF8.self)
          bodyLeft = Self.length(text) ?? 0
          let trap = began(Self.name(text))
          let count = bodyLeft
          current.withLock { $0 = Current(trap: trap, requestBytes: count) }
          (half, sent) = (nil, 0)
          if let trap, case .insideRequest = trap.point { half = bodyLeft / 2 }
          guard Sockets.send(server, head[...]) else { return .finished }
          head = []
          continue
        }
        var step = min(bytes.count, bodyLeft)
        if let half, sent < half { step = min(step, half - sent) }
        guard Sockets.send(server, bytes.prefix(step)) else { return .finished }
        bytes.removeFirst(step)
        bodyLeft -= step
        sent += step
        if let limit = half, sent >= limit {
          half = nil
          let (trap, count) = current.withLock { ($0.trap, $0.requestBytes) }
          if trap?.wait(Trap.Hit(bytes: sent, bytesInAll: count)) == .cut { return .cut }
        }
      }
    }
    return .finished
  }

  // MARK: To the device

  private func down() -> End {
    while let bytes = Sockets.receive(server) {
      let (trap, isFirst) = current.withLock { ($0.trap, $0.answerHead?.isEmpty == true) }
      if isFirst, let trap, case .beforeAnswer = trap.point {
        let count = current.withLock { $0.requestBytes }
        if trap.wait(Trap.Hit(bytes: count, bytesInAll: count)) == .cut { return .cut }
      }
      guard let trap, case .insideAnswer(let limit) = trap.point else {
        current.withLock { if $0.answerHead != nil { $0.answerHead = nil } }
        guard Sockets.send(device, bytes[...]) else { return .finished }
        continue
      }
      if passAnswer(bytes, limit, trap) == .cut { return .cut }
    }
    return .finished
  }

  private func passAnswer(_ bytes: [UInt8], _ limit: Int, _ trap: Trap) -> End {
    var rest = bytes[...]
    let head = current.withLock { current -> ArraySlice<UInt8>? in
      guard var head = current.answerHead else { return nil }
      while !rest.isEmpty {
        head.append(rest.removeFirst())
        guard head.suffix(4) == Array("\r\n\r\n".utf8)[...] else { continue }
        current.answerHead = nil
        current.answerInAll = Self.length(String(decoding: head, as: UTF8.self))
        return head[...]
      }
      current.answerHead = head
      return []
    }
    if let head, !head.isEmpty, !Sockets.send(device, head) { return .finished }
    guard !rest.isEmpty else { return .finished }
    let (done, total) = current.withLock { ($0.answerBytes, $0.answerInAll) }
    let isCrossing = done < limit && done + rest.count >= limit
    let first = isCrossing ? rest.prefix(limit - done) : rest
    guard Sockets.send(device, first) else { return .finished }
    current.withLock { $0.answerBytes += rest.count }
    guard isCrossing else { return .finished }
    if trap.wait(Trap.Hit(bytes: limit, bytesInAll: total)) == .cut { return .cut }
    _ = Sockets.send(device, rest.dropFirst(first.count))
    return .finished
  }

  // MARK: Heads

  private static func name(_ head: String) -> String {
    let words = head.prefix { $0 != "\r\n" }.split(separator: " ")
    guard words.count == 3 else { return "?" }
    let parts = words[1].split(separator: "/").map { $0.count == 64 ? "*" : $0 }
    return "\(words[0]) /" + parts.joined(separator: "/")
  }

  private static func length(_ head: String) -> Int? {
    for line in head.split(separator: "\r\n") where line.lowercased().hasPrefix("content-length:") {
      return Int(line.dropFirst("content-length:".count).trimmingCharacters(in: .whitespaces))
    }
    return nil
  }
}
