import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync

// How this device gets to be one of a player's, and finds out that it is.
extension CloudConnection {
  /// Pauses between attempts to register: half a second at first, doubled each time, up to five minutes.
  private static let firstPause = 0.5
  private static let longestPause = 300.0

  /// - Parameter showing: Whether to show that the connection is being made; false if there is a failure to show.
  func keepRegistering(showing: Bool = true) {
    guard registering == nil else { return }
    if showing {
      state.post(.connecting)
      showWithoutService()
    }
    registering = Task {
      var pause = Self.firstPause
      while !Task.isCancelled {
        do {
          try await self.introduce()
          self.registering = nil
          return await self.reconcile()
        } catch {
          guard !Task.isCancelled else { return }
          self.failed(error)
          let code = (error as? GameDataError)?.code
          // Trying again won't help, but `sync` or `join` may.
          if code == .refused { return }
          // The studio may entitle the game at any time, and nothing announces it.
          if code == .notEntitled { pause = Self.longestPause }
        }
        // When a server comes back, its many devices must not all connect at the same moment.
        let jittered = Double.random(in: pause / 2...pause, using: &self.random)
        do { try await self.sleep(.seconds(jittered)) } catch { return }
        pause = min(pause * 2, Self.longestPause)
      }
    }
  }

  /// Registers this device with its cloud, or makes the folder a cloud, if needed. Tries once.
  func introduce() async throws {
    guard case .folder(let folder)? = address?.kind else {
      _ = try await register()
      return
    }
    do {
      try folder.makeContainer(for: core.store.base)
    } catch {
      failed(error)
      throw GameDataError.translated(error)
    }
  }

  /// Returns the credentials; registers this device first if needed. Tries once.
  func register() async throws -> CloudCredentials {
    let server = try server()
    // Shared data leaves the container of the player before.
    if try await registration.hasOtherParent(at: server) { try refuseToLeaveContents() }
    return try await registration.register(at: server, name: state.desired.deviceName)
  }

  /// Whether this shared data leaves its container, because its game is another device by now. It stays as long as
  /// contents are only there, which can be downloaded until then.
  func isLeaving(for address: CloudAddress) async throws -> Bool {
    guard case .server(let server) = address.kind, try await registration.hasOtherParent(at: server) else {
      return false
    }
    do {
      try refuseToLeaveContents()
      return true
    } catch {
      guard (error as? GameDataError)?.code == .notDownloaded else { throw error }
      return false
    }
  }

  func server() throws -> CloudServer {
    if case .folder? = address?.kind {
      throw GameDataError(.misuse, "a folder needs no pairing code: connect the other device to the same folder")
    }
    guard case .server(let server)? = address?.kind else { throw GameDataError.notConnected }
    return server
  }

  // MARK: Credentials

  /// Returns the stored credentials; nil if there are none. If they can't be read, tries again until they can: a
  /// keychain is locked until the device has been unlocked, and what can't be read isn't gone.
  func knownCredentials(at server: CloudServer) async throws -> CloudFile.Contents? {
    do {
      return try await isLeaving(for: CloudAddress(kind: .server(server))) ? nil : registration.known(at: server)
    } catch {
      if !core.credentials.all.isEmpty { report(error) }
      keepRegistering(showing: false)
      throw error
    }
  }

  /// Moves everything secret to where the game wants it. Until that succeeds, it is used where it is.
  func moveSecrets() async {
    guard !hasMovedSecrets, !core.credentials.all.isEmpty else { return }
    do {
      try await registration.moveSecrets()
      hasMovedSecrets = true
    } catch {
      report(error)
    }
  }

  /// In the same words for both, so that a store that can't be read is one incident.
  private func report(_ error: any Error) {
    core.events.report(
      Incident(
        kind: .credentialStoreFailed,
        message: "this device's credentials can't be read, or not all of them moved to where they belong: \(error)",
        date: core.now))
  }
}
