#if Cloud
import Dispatch
package import Foundation
import Logging
import NIOCore
import NIOSSL

/// Where a server's certificate is.
package struct TLSFiles: Hashable, Sendable {
  /// In PEM: the server's certificate, then those between it and the root.
  package var certificate: URL
  /// In PEM.
  package var key: URL

  package init(certificate: URL, key: URL) { (self.certificate, self.key) = (certificate, key) }
}

/// The certificate that a server shows, read again when its files change: new connections get the new one.
///
/// While the files don't belong together, as between the renaming of one and the other, the certificate from before
/// stays in use.
struct TLSCertificates: Sendable {
  private struct Pair: Sendable {
    var chain: [NIOSSLCertificateSource]
    var key: NIOSSLPrivateKeySource
    var expiresSeconds: Int64
  }
  private static let queue = DispatchQueue(label: "keepsake.cloud.certificates")
  private let pair: WatchedFiles<Pair>

  /// - Throws: A `ServerError` if the files can't be read, or don't belong together.
  init(_ files: TLSFiles, logger: Logger) throws {
    Self.warnIfReadable(files.key, logger)
    pair = try WatchedFiles([files.certificate, files.key], what: "certificate", logger: logger) {
      try Self.read(files)
    }
  }

  /// When the certificate expires, in seconds since 1970.
  var expiresSeconds: Int64 { pair.value.expiresSeconds }

  /// Reads the files again, whether they look changed or not.
  func reload() { pair.reload() }

  /// TLS 1.2 or later, with the certificate that is current when a connection is opened.
  func configuration() -> TLSConfiguration {
    let current = pair.value
    var configuration = TLSConfiguration.makeServerConfiguration(
      certificateChain: current.chain, privateKey: current.key)
    configuration.minimumTLSVersion = .tlsv12
    configuration.sslContextCallback = { [pair] _, promise in
      // Not on the connection's own thread: a key that is found not to be the certificate's leaves an error in the TLS
      // library's list for the thread, and a handshake there would take it for its own.
      Self.queue.async {
        let current = pair.value
        var override = NIOSSLContextConfigurationOverride()
        override.certificateChain = current.chain
        override.privateKey = current.key
        promise.succeed(override)
      }
    }
    return configuration
  }

  private static func read(_ files: TLSFiles) throws -> Pair {
    func bytes(_ url: URL) throws -> [UInt8] {
      guard let bytes = try PrivateFile.read(url) else {
        throw ServerError(.missing, "There is no file \(url.path) for TLS.")
      }
      return [UInt8](bytes)
    }
    let chain: [NIOSSLCertificate]
    let key: NIOSSLPrivateKey
    do {
      chain = try NIOSSLCertificate.fromPEMBytes(bytes(files.certificate))
    } catch let error as NIOSSLError {
      throw ServerError(.unusableFile, "\(files.certificate.path) has no certificate in PEM.", cause: error)
    }
    do {
      key = try NIOSSLPrivateKey(bytes: bytes(files.key), format: .pem)
    } catch let error as NIOSSLError {
      throw ServerError(.unusableFile, "\(files.key.path) has no private key in PEM.", cause: error)
    }
    guard let first = chain.first else {
      throw ServerError(.unusableFile, "\(files.certificate.path) has no certificate in PEM.")
    }
    let pair = Pair(
      chain: chain.map { .certificate($0) }, key: .privateKey(key), expiresSeconds: Int64(first.notValidAfter))
    do {
      // Fails if the key isn't the certificate's.
      _ = try NIOSSLContext(
        configuration: .makeServerConfiguration(certificateChain: pair.chain, privateKey: pair.key))
    } catch {
      throw ServerError(
        .configuration, "The key in \(files.key.path) isn't that of the certificate in \(files.certificate.path).",
        cause: error)
    }
    return pair
  }

  private static func warnIfReadable(_ key: URL, _ logger: Logger) {
    let mode = try? FileManager.default.attributesOfItem(atPath: key.path)[.posixPermissions] as? NSNumber
    guard let mode, mode.intValue & 0o007 != 0 else { return }
    logger.warning("Every user of this machine can read the private key", metadata: ["file": "\(key.path)"])
  }
}
#endif
